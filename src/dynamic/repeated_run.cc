#include "dynamic/repeated_run.h"

#include <algorithm>

namespace collage {

namespace {

std::optional<size_t> position_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

std::optional<RepeatedRun> RepeatedRun::of(const RepeatedInputs& inputs,
                                           const TensorConditions& conditions,
                                           const frontend::ImportedStage& stage,
                                           const std::vector<std::string>& outputs,
                                           StageProgram* program, SpecialisationInfo* info) {
  for (const auto& [name, condition] : conditions)
    if (condition.value && position_of(inputs.names, name)) return std::nullopt;
  const auto source = [&](const std::string& name) -> std::optional<Source> {
    const auto constant = inputs.constants.find(name);
    if (constant != inputs.constants.end())
      return Source{Source::Kind::kConstant, 0, constant->second};
    const auto alias = stage.aliases.find(name);
    const std::string& own = alias == stage.aliases.end() ? name : alias->second;
    if (const auto at = position_of(inputs.names, own)) return Source{Source::Kind::kGiven, *at};
    if (const auto around = inputs.kept.find(own); around != inputs.kept.end())
      return Source{Source::Kind::kKept, 0, around->second};
    return std::nullopt;
  };
  RepeatedRun run;
  run.types_ = inputs.types;
  run.program_ = program;
  run.info_ = info;
  for (const std::string& name : stage.inputs) {
    const std::optional<Source> from = source(name);
    if (!from) return std::nullopt;
    run.inputs_.push_back(*from);
  }
  for (const std::string& name : outputs) {
    std::optional<Source> from = source(name);
    if (const auto computed = position_of(stage.outputs, name))
      from = Source{Source::Kind::kComputed, *computed};
    if (!from) return std::nullopt;
    run.outputs_.push_back(*from);
  }
  return run;
}

bool RepeatedRun::serves(const std::vector<Tensor>& given) const {
  if (program_ != nullptr && program_->is_worth_compiling()) return false;
  return std::equal(given.begin(), given.end(), types_.begin(), types_.end(),
                    [](const Tensor& tensor, const TensorType& type) {
                      return tensor.dtype() == type.dtype && tensor.shape() == type.shape;
                    });
}

const Tensor& RepeatedRun::Source::in(const std::vector<Tensor>& given,
                                      const std::vector<Tensor>& computed) const {
  return kind == Kind::kGiven      ? given[position]
         : kind == Kind::kComputed ? computed[position]
                                   : tensor;
}

Result<std::vector<Tensor>> RepeatedRun::run(const std::vector<Tensor>& given) {
  std::vector<Tensor> computed;
  if (program_ != nullptr) {
    std::vector<Tensor> inputs;
    inputs.reserve(inputs_.size());
    for (const Source& source : inputs_) inputs.push_back(source.in(given, {}));
    computed = TRY(program_->run(inputs));
    ++info_->runs;
  }
  std::vector<Tensor> outputs;
  outputs.reserve(outputs_.size());
  for (const Source& source : outputs_) {
    const Tensor& output = source.in(given, computed);
    // What every run gives is ours.
    outputs.push_back(source.kind == Source::Kind::kConstant ? output.clone() : output);
  }
  return outputs;
}

}  // namespace collage
