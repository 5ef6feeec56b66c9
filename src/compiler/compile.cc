#include "compiler/compile.h"

#include <optional>
#include <type_traits>

#include "base/no_exceptions.h"
#include "compiler/backends.h"
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

Status check_options(const ProgramOptions& options) {
  constexpr int kMostThreads = 1024;
  constexpr double kMostPatience = 1e9;
  if (options.threads < 0 || options.threads > kMostThreads)
    return usage_error("{} threads: it is 1 to {}, or 0 for all cores", options.threads,
                       kMostThreads);
  if (!(options.patience >= 0 && options.patience <= kMostPatience))
    return usage_error("a patience of {:g} seconds", options.patience);
  if (!(options.max_error >= 0 && options.max_error <= 1))
    return usage_error("a max_error of {:g}: it is from 0 to 1", options.max_error);
  return {};
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
  TRY(check_options(options));
  return without_exceptions([&] {
    register_all();
    return with_team(options, [&] { return make_program(model, options, progress); });
  });
}

Result<CoverPrediction> predict_seconds(const Model& model, const ProgramOptions& options,
                                        Progress* progress) {
  TRY(check_options(options));
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
