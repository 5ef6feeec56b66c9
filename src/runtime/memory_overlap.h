// Checks whether tensors of a caller share bytes: an output may share none with an input or with
// another output, since kernels write outputs while inputs are still read, in no defined order.
#pragma once

#include <collage/tensor.h>

#include <functional>
#include <span>

#include "base/result.h"

namespace collage {

// Where the elements of a tensor lie.
struct TensorMemory {
  const char* begin = nullptr;
  size_t item = 0;  // bytes of an element
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  // in elements; empty: dense
};
TensorMemory memory_of(const Tensor& tensor);  // as long as the tensor is there

bool overlap(const TensorMemory& a, const TensorMemory& b);

// kBadModel: an output shares bytes with an input or an earlier output, or elements of one output
// share bytes. A tensor at null is skipped.
using NameOf = std::function<std::string(size_t index)>;
Status check_outputs_apart(std::span<const TensorMemory> inputs,
                           std::span<const TensorMemory> outputs, const NameOf& input_name,
                           const NameOf& output_name);

}  // namespace collage
