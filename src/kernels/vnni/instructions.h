// The instruction that multiplies 16-bit integers, for functions marked COLLAGE_VNNI.
#pragma once

#include "kernels/contraction/instructions.h"

#define COLLAGE_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define COLLAGE_VNNI_INSIDE COLLAGE_VNNI __attribute__((always_inline)) inline

namespace collage::vnni {

/// Adds to each 32-bit integer of the sum the products of two pairs of 16-bit ones. GCC 12 spills
/// the sums of its own intrinsic, which it takes for new variables each time.
COLLAGE_VNNI_INSIDE void add_products(__m512i& sum, __m512i a, __m512i b) {
  __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

}  // namespace collage::vnni
