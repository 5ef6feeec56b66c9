// Float32 weights as sums of two bfloat16 numbers: w = w_high + w_low, where w_high is w rounded
// and w_low is what the rounding lost, rounded. x·w ≈ x·w_low + x·w_high is one bfloat16 product
// over twice as long a sum: the weights' rounding errs most where many sums use the same weights,
// as its errors do not average out.
#pragma once

#include <collage/tensor.h>

#include <cstdint>

namespace collage::onednn {

// Rows of `width` bfloat16 numbers become [x | x].
void repeat_rows(const uint16_t* source, uint16_t* target, int64_t rows, int64_t width);

// A float32 constant whose dimension `dim` becomes [w_low | w_high], or stays where `parts` is 1. A
// conversion to bfloat16 does not change parts any more.
Tensor split_weights(const Tensor& weights, size_t dim, int64_t parts);

}  // namespace collage::onednn
