#include "tensor_program/in_place.h"

#include <algorithm>

#include "tensor_program/external.h"
#include "tensor_program/pattern_kind.h"

namespace collage::tensor_program {
namespace {

/// How many stages and updates read it.
size_t readers(const Program& program, const std::string& name) {
  size_t count = 0;
  for (const Stage& stage : program.stages) {
    const auto& inputs = stage.external.inputs;
    count += static_cast<size_t>(std::count(inputs.begin(), inputs.end(), name));
    for_each_term(stage, [&](const Term& term) {
      const std::vector<std::string> names = loaded_names(term);
      count += static_cast<size_t>(std::count(names.begin(), names.end(), name));
    });
  }
  return count;
}

const Buffer* only_read_here(const Program& program, const std::string& name) {
  const Buffer* buffer = program.find_buffer(name);
  return buffer != nullptr && !buffer->is_constant && readers(program, name) == 1 ? buffer
                                                                                  : nullptr;
}

/// What the function of the stage updates.
const Buffer* updated_by_library(const Program& program, const Stage& stage) {
  const ExternalFunction* function =
      stage.external.label.empty() ? nullptr : find_external(stage.external.label);
  if (function == nullptr || function->updates.empty() || !stage.updates.empty()) return nullptr;
  return only_read_here(program, stage.external.inputs.at(function->updates[0]));
}

}  // namespace

const Buffer* updated_param(const Program& program, const Stage& stage) {
  if (!stage.is_result || !stage.value.defined() || stage.updates.empty()) return nullptr;
  const Term& value = stage.value;
  if (value->op != TermOp::kLoad || !are_own_indices(stage, value->args)) return nullptr;
  const Buffer* buffer = only_read_here(program, value->name);
  return buffer != nullptr && buffer->type.shape == stage.shape() ? buffer : nullptr;
}

std::vector<InPlaceResult> in_place_results(const Program& program) {
  std::vector<InPlaceResult> found;
  size_t result = 0;
  for (const Stage& stage : program.stages) {
    if (!stage.is_result) continue;
    const Buffer* param = updated_param(program, stage);
    if (param == nullptr) param = updated_by_library(program, stage);
    if (param != nullptr) found.push_back({param, result});
    ++result;
  }
  return found;
}

}  // namespace collage::tensor_program
