// Costs by arithmetic and bytes alone: what stands for those that nobody measured.
#pragma once

#include "ir/work.h"
#include "runtime/encoding.h"

namespace collage {

// A slow processor's time: a measured alternative wins.
double analytic_seconds(double flops, double bytes);
inline double analytic_seconds(const Function& function) {
  return analytic_seconds(function_flops(function), function_bytes(function));
}

// What a kernel takes at least, with so many threads of a processor of today, by arithmetic that is
// at most `speedup` times as fast as float32 multiply-adds of its widest vectors. Convolutions over
// an image count a quarter of their products (Winograd), products of 8-bit integers as few as its
// dot products or its matrix unit make of them.
double least_kernel_seconds(const Function& function, int threads, double speedup);

// What a change of encoding takes at least, with so many threads: both sides of it at the bandwidth
// of private caches. A conversion that is not worth this is not worth measuring.
double least_conversion_seconds(const TensorType& type, const Encoding& from, const Encoding& to,
                                int threads);

}  // namespace collage
