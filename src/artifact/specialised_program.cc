#include "artifact/specialised_program.h"

#include <map>
#include <mutex>

#include "ops/interpreter.h"
#include "runtime/run_number.h"

namespace collage::internal {

namespace {

// Memory for intermediate results of each specialisation that it ran, and its own states.
struct SpecialisedContext : ContextImpl {
  explicit SpecialisedContext(const SpecialisedProgram& made)
      : loaded(made.loaded), states(loaded->interface().states, loaded->interface().padding) {}

  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) override {
    const std::lock_guard lock(running.get());
    return run_bucketed(loaded->interface(), states, inputs, outputs,
                        [&](const TensorsByName& tensors) { return compute(tensors); });
  }
  void reset() override {
    const std::lock_guard lock(running.get());
    states.reset();
  }

  Result<Executor*> executor_of(size_t number);
  Result<std::vector<Tensor>> compute_part(size_t part, const tensor_program::Symbols& values,
                                           const std::vector<Tensor>& inputs);
  Result<std::vector<Tensor>> compute(TensorsByName tensors);

  const std::shared_ptr<LoadedSpecialisations> loaded;
  States states;
  std::map<size_t, Executor> executors;  // by the specialisation's number
  uint64_t runs = 0;                     // of any of them
  OfProcess<std::mutex> running;
};

// Null where nothing is computed.
Result<Executor*> SpecialisedContext::executor_of(size_t number) {
  const auto known = executors.find(number);
  if (known != executors.end()) return &known->second;
  const std::shared_ptr<const Plan> plan = TRY(loaded->plan(number));
  if (plan == nullptr) return nullptr;
  Executor made = TRY(Executor::create_beside(plan, loaded->threads()));
  return &executors.emplace(number, std::move(made)).first->second;
}

// What was not compiled is interpreted.
Result<std::vector<Tensor>> SpecialisedContext::compute_part(size_t part,
                                                             const tensor_program::Symbols& values,
                                                             const std::vector<Tensor>& inputs) {
  const tensor_program::ModuleParts& parts = *loaded->parts();
  const tensor_program::ModulePart& of = parts.parts()[part];
  if (const auto number = loaded->find_part(parts.key(part, values, inputs)))
    if (Executor* executor = TRY(executor_of(*number)); executor != nullptr) {
      std::vector<Tensor> outputs(of.outputs.size());
      TRY(executor->run_as(inputs, outputs, runs));
      return outputs;
    }
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back({input.shape(), input.dtype()});
  const Module module = TRY(parts.instantiate(of, types, values));
  const RunNumber number(runs);
  return interpret(module.main(), inputs);
}

Result<std::vector<Tensor>> SpecialisedContext::compute(TensorsByName tensors) {
  if (loaded->parts() != nullptr) {
    auto results = loaded->parts()->run(std::move(tensors), [&](size_t part, const auto& values,
                                                                const std::vector<Tensor>& inputs) {
      return compute_part(part, values, inputs);
    });
    ++runs;
    return results;
  }
  const size_t number = TRY(loaded->find(tensors));
  const PlanForShapes& names = loaded->specialisations()[number];
  const auto take = [&](const std::string& name) -> Result<Tensor> {
    const auto it = tensors.find(name);
    if (it == tensors.end()) return bad_model("there is no tensor '{}'", name);
    return it->second;
  };
  for (const auto& [name, input] : names.aliases) tensors[name] = TRY(take(input));
  if (Executor* executor = TRY(executor_of(number)); executor != nullptr) {
    std::vector<Tensor> inputs, outputs(names.outputs.size());
    for (const std::string& name : names.inputs) inputs.push_back(TRY(take(name)));
    TRY(executor->run_as(inputs, outputs, runs++));
    for (size_t i = 0; i < outputs.size(); ++i) tensors[names.outputs[i]] = std::move(outputs[i]);
  }
  std::vector<Tensor> results;
  for (const std::string& name : loaded->results()) {
    // What every run gives is ours.
    const auto constant = names.constants.find(name);
    results.push_back(constant != names.constants.end() ? constant->second.clone()
                                                        : TRY(take(name)));
  }
  return results;
}

}  // namespace

SpecialisedProgram::SpecialisedProgram(std::shared_ptr<LoadedSpecialisations> file)
    : loaded(std::move(file)) {
  inputs = loaded->interface().inputs;
  outputs = loaded->interface().outputs;
  threads = loaded->threads();
}

std::vector<SpecialisationInfo> SpecialisedProgram::specialisations() const {
  std::vector<SpecialisationInfo> infos;
  for (const PlanForShapes& one : loaded->specialisations())
    infos.push_back({"main", one.part.empty() ? shapes_text(one.conditions) : one.part});
  return infos;
}

Result<std::unique_ptr<ContextImpl>> SpecialisedProgram::make_context() const {
  return std::make_unique<SpecialisedContext>(*this);
}

}  // namespace collage::internal
