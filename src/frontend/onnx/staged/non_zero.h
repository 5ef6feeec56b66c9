// Where a tensor is not zero, as the ONNX operator NonZero says it: while importing, of a constant;
// at run time by src/dynamic/host.
#pragma once

#include <collage/tensor.h>

#include "base/result.h"

namespace collage::frontend {

// An int64 tensor (rank, count): a column for each element that is not zero, in row-major order,
// with its index. NaN is not zero. A scalar counts as a list of one element, as in ONNX Runtime.
Result<Tensor> find_non_zero(const Tensor& data);

}  // namespace collage::frontend
