// TensorType: the shape and dtype of a tensor, always known before anything runs.
#pragma once

#include <collage/tensor.h>

#include <string>

namespace collage {

struct TensorType {
  Shape shape;
  DType dtype = DType::kFloat32;
  bool operator==(const TensorType&) const = default;
  size_t bytes() const { return static_cast<size_t>(num_elements(shape)) * dtype_size(dtype); }
  std::string to_string() const;  // "Tensor[(1, 3), float32]"; a scalar is "float32"
};

}  // namespace collage
