#include "runtime/tensor_type.h"

#include <fmt/format.h>

namespace collage {

std::string TensorType::to_string() const {
  if (shape.empty()) return std::string(dtype_name(dtype));
  return fmt::format("Tensor[{}, {}]", shape_to_string(shape), dtype_name(dtype));
}

}  // namespace collage
