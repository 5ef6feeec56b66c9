#include "artifact/bucketing/tensor_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace collage {

bool TensorCondition::holds(const Tensor& tensor) const {
  if (tensor.dtype() != type.dtype || tensor.shape() != type.shape) return false;
  return !value || value->bytes() == 0 ||
         std::memcmp(tensor.raw(), value->raw(), value->bytes()) == 0;
}

bool hold(const TensorConditions& conditions, const TensorsByName& tensors) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const auto& condition) {
    const auto it = tensors.find(condition.first);
    return it != tensors.end() && condition.second.holds(it->second);
  });
}

std::string shapes_text(const TensorConditions& conditions) {
  std::string text;
  for (const auto& [name, condition] : conditions)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        shape_to_string(condition.type.shape));
  return text;
}

}  // namespace collage
