// A tensor as slices along one axis.
#pragma once

#include <collage/tensor.h>

#include <vector>

#include "base/result.h"

namespace collage::dynamic {

// Returns a view of all elements as a list.
Tensor flattened(const Tensor& data);

// Returns the slices of these indices, in order. The indices must be within the axis.
Result<Tensor> take_slices(const Tensor& data, int64_t axis, const std::vector<int64_t>& indices);

}  // namespace collage::dynamic
