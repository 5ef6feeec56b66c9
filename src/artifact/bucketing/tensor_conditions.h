// The conditions on a run's tensors under which a specialisation can compute with them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "artifact/bucketing/states.h"
#include "runtime/tensor_type.h"

namespace collage {

struct TensorCondition {
  TensorType type;
  std::optional<Tensor> value;  // where the contents decided shapes

  bool holds(const Tensor& tensor) const;
};

using TensorConditions = std::map<std::string, TensorCondition>;  // by the tensor's name
bool hold(const TensorConditions& conditions, const TensorsByName& tensors);

// Returns "tokens (1, 64), mask (1, 64)".
std::string shapes_text(const TensorConditions& conditions);

}  // namespace collage
