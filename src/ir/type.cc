#include "ir/type.h"

#include <fmt/format.h>

namespace collage {

std::vector<TensorType> Type::leaves() const {
  if (is_tensor()) return {tensor_};
  std::vector<TensorType> leaves;
  if (is_tuple())
    for (const Type& field : fields_)
      for (TensorType& leaf : field.leaves()) leaves.push_back(std::move(leaf));
  return leaves;
}

std::string Type::to_string() const {
  if (is_tensor()) return tensor_.to_string();
  std::string text;
  size_t count = is_tuple() ? fields_.size() : fields_.size() - 1;
  for (size_t i = 0; i < count; ++i) text += (i ? ", " : "") + fields_[i].to_string();
  if (is_tuple()) return "(" + text + (count == 1 ? ",)" : ")");
  return "fn (" + text + ") -> " + fields_.back().to_string();
}

}  // namespace collage
