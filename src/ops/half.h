// float16 and bfloat16: conversion, and a wrapper that lets a reference kernel written for float32
// serve them: half-width inputs are widened, the outputs rounded once at the end.
#pragma once

#include <collage/tensor.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "ir/attrs.h"

namespace collage {

using ReferenceKernel = std::function<Status(std::span<const Tensor> inputs, const Attrs& attrs,
                                             std::span<Tensor> outputs)>;

inline bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// Rounds to nearest, ties to even; keeps infinities and NaN.
inline uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float half_to_float(uint16_t bits, DType dtype);   // dtype: kFloat16 or kBFloat16
uint16_t float_to_half(float value, DType dtype);  // rounds to nearest even; keeps NaN
// Converts many, with F16C's instructions if the processor has them.
void halves_to_floats(const uint16_t* from, DType dtype, int64_t count, float* to);
void floats_to_halves(const float* from, DType dtype, int64_t count, uint16_t* to);

ReferenceKernel with_halves(ReferenceKernel kernel);

}  // namespace collage
