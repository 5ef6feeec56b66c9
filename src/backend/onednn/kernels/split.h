// Splits float32 weights into sums of two bfloat16 numbers: w = w_high + w_low, where w_high is w
// rounded and w_low is the rounded rest. x·w ≈ x·w_low + x·w_high is one bfloat16 product over
// twice as long a sum: rounding of weights errs most where many sums use the same weights, as its
// errors do not average out.
#pragma once

#include <collage/tensor.h>

#include <cstdint>

namespace collage::onednn {

// Repeats rows of `width` bfloat16 numbers: [x | x].
void repeat_rows(const uint16_t* source, uint16_t* target, int64_t rows, int64_t width);

// Returns a float32 constant with dimension `dim` as [w_low | w_high], or unchanged if `parts` is
// 1. A conversion to bfloat16 does not change parts any more.
Tensor split_weights(const Tensor& weights, size_t dim, int64_t parts);

}  // namespace collage::onednn
