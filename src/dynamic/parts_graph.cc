#include "dynamic/parts_graph.h"

#include <algorithm>
#include <utility>

#include "runtime/run_number.h"

namespace collage {

using tensor_program::ModulePart;
using tensor_program::Symbols;

Result<PartsGraph::Specialisation> PartsGraph::make(size_t part, const Symbols& values,
                                                    const std::vector<Tensor>& inputs,
                                                    bool many_runs) {
  const ModulePart& of = parts_->parts()[part];
  frontend::ImportedStage stage;
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back({input.shape(), input.dtype()});
  stage.module = TRY(parts_->instantiate(of, types, values));
  stage.inputs = of.inputs;
  stage.outputs = of.outputs;
  SpecialisationInfo info;
  info.part = part == 0 ? "main" : fmt::format("main/{}", part);
  info.shapes = parts_->key(part, values, inputs);
  const bool is_first = std::none_of(made_[part].begin(), made_[part].end(), [](const auto& made) {
    return !made.second.listed->info().interpreted;
  });
  const StageCare care = is_first    ? StageCare::kAsAsked
                         : part == 0 ? StageCare::kKnown
                                     : StageCare::kQuick;
  Specialisation made;
  made.program = TRY(make_stage_program(stage, "", care, many_runs, context_, info));
  made.listed = std::make_unique<ListedInfo>(context_, std::move(info));
  return made;
}

Result<std::vector<Tensor>> PartsGraph::compute(size_t part, const Symbols& values,
                                                const std::vector<Tensor>& inputs) {
  auto& made = made_[part];
  const std::string key = parts_->key(part, values, inputs);
  auto found = made.find(key);
  const bool many_runs = found != made.end() && found->second.program->is_worth_compiling();
  if (found == made.end() || many_runs) {
    Specialisation one = TRY(make(part, values, inputs, many_runs));
    if (found == made.end() && made.size() >= kMaxSpecialisations)
      made.erase(std::min_element(made.begin(), made.end(), [](const auto& a, const auto& b) {
        return a.second.last_run < b.second.last_run;
      }));
    found = made.insert_or_assign(key, std::move(one)).first;
  }
  found->second.last_run = runs_;
  ++found->second.listed->info().runs;
  const RunNumber number(runs_ - 1);
  return found->second.program->run(inputs);
}

Result<std::vector<Tensor>> PartsGraph::run(TensorsByName tensors) {
  ++runs_;
  return parts_->run(std::move(tensors),
                     [&](size_t part, const Symbols& values, const std::vector<Tensor>& inputs) {
                       return compute(part, values, inputs);
                     });
}

Result<std::vector<CompiledForShapes>> PartsGraph::compiled() const {
  std::vector<CompiledForShapes> result;
  for (size_t part = 0; part < made_.size(); ++part)
    for (const auto& [key, made] : made_[part]) {
      if (made.listed->info().interpreted) continue;
      const ModulePart& of = parts_->parts()[part];
      CompiledForShapes compiled;
      compiled.names.part = key;
      compiled.names.inputs = of.inputs;
      compiled.names.outputs = of.outputs;
      compiled.plan = TRY(made.program->plan().with_context(key));
      result.push_back(std::move(compiled));
    }
  if (runs_ == 0) return usage_error("nothing was compiled: prepare shapes first");
  return result;
}

}  // namespace collage
