#include "compiler/run_on_threads.h"

#include <cstring>

#include "verify/synthetic.h"

namespace collage::testing {

bool same_bits(const std::vector<Tensor>& some, const std::vector<Tensor>& others) {
  bool same = some.size() == others.size();
  for (size_t i = 0; same && i < some.size(); ++i)
    same = some[i].bytes() == others[i].bytes() &&
           std::memcmp(some[i].raw(), others[i].raw(), some[i].bytes()) == 0;
  return same;
}

Result<Rehearsed> Rehearsed::make(const Model& model, const ProgramOptions& options, int callers) {
  Rehearsed made;
  made.program_ = std::make_unique<Program>(TRY(Program::compile(model, options)));
  for (int caller = 0; caller < callers; ++caller) {
    made.inputs_.push_back(
        TRY(synthetic_inputs(model.impl().module.main(), static_cast<uint64_t>(caller) + 1)));
    made.expected_.push_back(TRY(made.program_->run(made.inputs_.back())));
    if (!same_bits(TRY(made.program_->run(made.inputs_.back())), made.expected_.back()))
      return internal_error("two runs for inputs {} differ though nobody else runs", caller);
  }
  return made;
}

namespace {

// `runner`: a program or a context.
template <typename Runner>
std::string run_with(Runner& runner, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& expected, int caller, int runs) {
  for (int run = 0; run < runs; ++run) {
    Result<std::vector<Tensor>> outputs = runner.run(inputs);
    if (!outputs) return outputs.status().to_string();
    if (!same_bits(*outputs, expected))
      return fmt::format("caller {}, run {}: other bits", caller, run);
  }
  return "";
}

}  // namespace

std::string Rehearsed::run(int caller, int runs) {
  const size_t own = static_cast<size_t>(caller);
  return run_with(*program_, inputs_[own], expected_[own], caller, runs);
}

std::string Rehearsed::run_in_context(int caller, int runs) {
  const size_t own = static_cast<size_t>(caller);
  Result<Context> context = program_->make_context();
  if (!context) return context.status().to_string();
  return run_with(*context, inputs_[own], expected_[own], caller, runs);
}

}  // namespace collage::testing
