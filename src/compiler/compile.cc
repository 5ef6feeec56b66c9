#include "compiler/compile.h"

#include <optional>
#include <type_traits>

#include "base/no_exceptions.h"
#include "compiler/backends.h"
#include "compiler/check_options.h"
#include "compiler/compilation.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

// Whatever computes while compiling does so with the program's team; the caller's own OpenMP
// regions are not concerned.
template <typename Body>
auto with_team(const ProgramOptions& options, const Body& body) {
  std::optional<std::invoke_result_t<Body>> result;
  run_with_team(ThreadTeam(options.threads).size(), [&] { result.emplace(body()); });
  return std::move(*result);
}

Result<Program> make_program(const Model& model, const ProgramOptions& options,
                             Progress* progress) {
  auto impl = std::make_unique<internal::ProgramImpl>();
  impl->inputs = model.inputs();
  impl->outputs = model.outputs();
  Compilation compilation(model, options, progress, impl->report);
  TRY(compilation.gather());
  TRY(compilation.open_costs());
  TRY(compilation.search());
  TRY(compilation.choose());
  TRY(compilation.describe());
  impl->executor = TRY(compilation.make_executor());
  return Program(std::move(impl));
}

Result<CoverPrediction> predict(const Model& model, const ProgramOptions& options,
                                Progress* progress) {
  CompileReport report;
  Compilation compilation(model, options, progress, report);
  TRY(compilation.gather());
  TRY(compilation.open_costs());
  return compilation.predict();
}

}  // namespace

Result<Program> compile_model(const Model& model, const ProgramOptions& options,
                              Progress* progress) {
  TRY(check_options(model, options));
  return without_exceptions([&] {
    register_all();
    return with_team(options, [&] { return make_program(model, options, progress); });
  });
}

Result<CoverPrediction> predict_seconds(const Model& model, const ProgramOptions& options,
                                        Progress* progress) {
  TRY(check_options(model, options));
  return without_exceptions([&] {
    register_all();
    return with_team(options, [&] { return predict(model, options, progress); });
  });
}

Result<Program> Program::compile(const Model& model, const ProgramOptions& options) {
  return compile_model(model, options);
}
Program::Program(std::unique_ptr<internal::ProgramImpl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;
const std::vector<TensorInfo>& Program::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& Program::outputs() const { return impl_->outputs; }

Status Program::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  return without_exceptions([&] {
    outputs.resize(impl_->outputs.size());
    return impl_->executor->run(inputs, outputs);
  });
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

}  // namespace collage
