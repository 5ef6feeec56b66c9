// Float32 as a sum of two bfloat16 numbers: x = high + low, where high is x rounded and low is what
// the rounding lost, rounded. A product of two sums without its smallest term,
//   x·w ≈ x_low·w_high + x_high·w_low + x_high·w_high,
// errs by 2^-17 instead of 2^-9 and is one bfloat16 product over three times as long a sum. Of a
// source that is bfloat16 already, x·w ≈ x·w_low + x·w_high: the weights' rounding errs most where
// many sums use the same weights, as its errors do not average out.
#pragma once

#include <collage/tensor.h>

#include <cstdint>

namespace collage::onednn {

// Rows of `width` floats become rows [x_low | x_high | x_high] of bfloat16.
void split_rows(const float* source, uint16_t* target, int64_t rows, int64_t width);
// Rows of `width` bfloat16 numbers become [x | x].
void repeat_rows(const uint16_t* source, uint16_t* target, int64_t rows, int64_t width);

// A float32 constant whose dimension `dim` becomes [w_high | w_low | w_high], or the last two, or
// stays. A conversion to bfloat16 does not change parts any more.
Tensor split_weights(const Tensor& weights, size_t dim, int64_t parts);

}  // namespace collage::onednn
