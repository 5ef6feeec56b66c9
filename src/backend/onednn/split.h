// Float32 as a sum of two bfloat16 numbers: x = high + low, where high is x rounded and low is what
// the rounding lost, rounded. A product of two sums without its smallest term,
//   x·w ≈ x_low·w_high + x_high·w_low + x_high·w_high,
// errs by 2^-17 instead of 2^-9 and is one bfloat16 product over three times as long a sum.
#pragma once

#include <collage/tensor.h>

#include "backend/onednn/program.h"

namespace collage::onednn {

constexpr int64_t kSplitParts = 3;

// Rows of `width` floats become rows [x_low | x_high | x_high] of bfloat16.
void split_rows(const float* source, uint16_t* target, int64_t rows, int64_t width);
// Adds that as a step: `source` is float32, `target` bfloat16 and three times as large.
void append_split(ProgramBuilder& builder, Value source, Value target, int64_t rows, int64_t width);

// A float32 constant whose dimension `dim` becomes [w_high | w_low | w_high], which a conversion to
// bfloat16 does not change any more.
Tensor split_weights(const Tensor& weights, size_t dim);

}  // namespace collage::onednn
