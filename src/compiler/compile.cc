#include "compiler/compile.h"

#include "compiler/backends.h"
#include "compiler/compilation.h"

namespace collage {

Result<Program> compile_model(const Model& model, const ProgramOptions& options,
                              Progress* progress) {
  register_all();
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

Result<CoverPrediction> predict_seconds(const Model& model, const ProgramOptions& options,
                                        Progress* progress) {
  register_all();
  CompileReport report;
  Compilation compilation(model, options, progress, report);
  TRY(compilation.gather());
  TRY(compilation.open_costs());
  return compilation.predict();
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
  outputs.resize(impl_->outputs.size());
  return impl_->executor->run(inputs, outputs);
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

}  // namespace collage
