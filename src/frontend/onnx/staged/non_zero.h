// Non-zero positions of a tensor, by the definition of ONNX's NonZero: while importing, for a
// constant; at run time for src/dynamic/host.
#pragma once

#include <collage/tensor.h>

#include "base/result.h"

namespace collage::frontend {

// Returns an int64 tensor (rank, count): a column for each element that is not zero, in row-major
// order, with its index. NaN is not zero. A scalar counts as a list of one element, as in ONNX
// Runtime.
Result<Tensor> find_non_zero(const Tensor& data);

}  // namespace collage::frontend
