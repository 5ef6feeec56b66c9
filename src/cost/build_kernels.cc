// MeasuredCosts::build: what measuring would compile is compiled beforehand, by another machine.

#include <algorithm>
#include <map>
#include <set>

#include "cost/measured_costs.h"
#include "ir/text_printer.h"
#include "ir/work.h"
#include "tensor_program/external_call.h"

namespace collage {

namespace {

// The encodings that kernels write tensors of a type in, and read them in.
struct Encodings {
  TensorType type;
  std::set<Encoding> written, read;
};
using Tensors = std::map<std::string, Encodings>;

void add_tensors(const Function& function, const Variant& variant, Tensors& tensors) {
  // Inputs of a model come plain, and its results are to be.
  const auto of = [&](const TensorType& type) -> Encodings& {
    const Encoding plain = plain_encoding(type);
    return tensors.try_emplace(type.to_string(), Encodings{type, {plain}, {plain}}).first->second;
  };
  const std::vector<TensorType> results = function->result_type().leaves();
  for (size_t i = 0; i < std::min(function->params.size(), variant.inputs.size()); ++i)
    of(function->params[i]->tensor_type()).read.insert(variant.inputs[i]);
  for (size_t i = 0; i < std::min(results.size(), variant.outputs.size()); ++i)
    of(results[i]).written.insert(variant.outputs[i]);
}

}  // namespace

Result<MeasuredCosts::Built> MeasuredCosts::build(const std::vector<FunctionQuestion>& questions,
                                                  RoundingLimit rounding) {
  std::vector<MeasureTask> tasks;
  std::vector<const Function*> functions;  // of the tasks
  for (const auto& [function, targets] : questions) {
    if (targets.empty() || tensor_program::is_local(function)) continue;
    TimeRequest request;
    request.text = canonical_text(function);
    request.bytes = function_bytes(function);
    std::vector<std::string> names;
    for (const Target& target : targets) names.push_back(target.to_string());
    tasks.push_back(measurer_->task_of(std::move(request), std::move(names)));
    tasks.back().options.rounding = rounding;
    tasks.back().builds = true;
    functions.push_back(&function);
  }
  Built built;
  Tensors tensors;
  const std::vector<Measurer::Answer> answers = TRY(measurer_->ask_together(std::move(tasks)));
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    ++built.functions;
    for (const TargetCosts& entry : *answers[i])
      for (const MeasuredVariant& row : entry.variants) {
        ++built.variants;
        built.refused += std::holds_alternative<Invalid>(row.cost);
        add_tensors(*functions[i], row.variant, tensors);
      }
  }
  for (const auto& [name, tensor] : tensors)
    for (const Encoding& from : tensor.written)
      for (const Encoding& to : tensor.read) {
        if (from == to) continue;
        MeasureTask task = measurer_->task_of(ConvertRequest{tensor.type, from, to}, converters());
        task.builds = true;
        built.conversions += TRY(measurer_->ask(std::move(task))).has_value();
      }
  return built;
}

}  // namespace collage
