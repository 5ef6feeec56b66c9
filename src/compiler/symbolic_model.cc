#include "compiler/symbolic_model.h"

#include <utility>

#include "artifact/bucketing/padding.h"
#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "compiler/model_stages.h"
#include "frontend/onnx/symbolic_import.h"
#include "frontend/script/generalise.h"
#include "frontend/script/script.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

using tensor_program::SymbolicModule;
using tensor_program::SymbolicTensor;

// Text names no results.
SymbolicModel symbolic_model(SymbolicModule module, std::filesystem::path path = {},
                             const std::vector<std::string>& output_names = {}) {
  auto impl = std::make_shared<internal::SymbolicModelImpl>();
  for (const SymbolicTensor& param : module.params())
    impl->inputs.push_back(open_tensor(param.name, param.dims(), param.dtype));
  for (const SymbolicTensor& result : module.results()) {
    const size_t i = impl->outputs.size();
    impl->outputs.push_back(
        open_tensor(i < output_names.size() ? output_names[i] : fmt::format("output{}", i),
                    result.dims(), result.dtype));
  }
  impl->path = std::move(path);
  impl->module = std::move(module);
  return SymbolicModel(std::move(impl));
}

Result<SymbolicModel> import_model(const std::filesystem::path& path,
                                   const SymbolicOptions& options) {
  frontend::StagedModelOptions staged;
  staged.constants = options.constants;
  staged.data_roots = options.data_roots;
  const auto model = TRY(frontend::StagedModel::open(path, std::move(staged)));
  std::vector<std::string> names;
  for (const ModelInput& output : model->outputs()) names.push_back(output.name);
  SymbolicModule module =
      TRY(frontend::import_symbolic(*model, options.dims).with_context(path.string()));
  return symbolic_model(std::move(module), path, names);
}

}  // namespace

Result<SymbolicModel> SymbolicModel::load(const std::filesystem::path& path,
                                          const SymbolicOptions& options) {
  return without_exceptions([&]() -> Result<SymbolicModel> {
    register_all();
    if (!tensor_program::is_module_text(path)) return import_model(path, options);
    if (!options.constants.empty() || !options.dims.empty())
      return usage_error("{}: constants and dimensions are part of the text", path.string());
    SymbolicModule module = TRY(SymbolicModule::load(path));
    // Without symbols, what is wrong with it.
    if (module.symbols().empty()) TRY(module.instantiate({}).with_context(path.string()));
    return symbolic_model(std::move(module), path);
  });
}

Result<SymbolicModel> SymbolicModel::generalise(
    const std::vector<std::string>& symbols,
    const std::function<Result<Model>(const Sizes& sizes)>& build) {
  return without_exceptions([&]() -> Result<SymbolicModel> {
    register_all();
    return symbolic_model(
        TRY(tensor_program::generalise(symbols, [&](const Sizes& sizes) -> Result<Module> {
          return tensor_program::named_programs(TRY(build(sizes)).impl().module);
        })));
  });
}

const std::vector<std::string>& SymbolicModel::symbols() const { return impl_->module.symbols(); }
const std::vector<TensorInfo>& SymbolicModel::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& SymbolicModel::outputs() const { return impl_->outputs; }
const std::string& SymbolicModel::text() const { return impl_->module.text(); }

Result<Model> SymbolicModel::at(const Sizes& sizes, bool simplify) const {
  return without_exceptions([&]() -> Result<Model> {
    Module module = TRY(impl_->module.instantiate(TRY(impl_->module.bind({}, sizes))));
    Model model =
        TRY(staged_model(Model(std::make_shared<internal::ModelImpl>()), std::move(module)));
    internal::ModelImpl& made = model.impl();
    made.path = impl_->path;
    for (size_t i = 0; i < made.outputs.size(); ++i) made.outputs[i].name = outputs()[i].name;
    TRY(verify_model(model));
    return simplify ? simplified(model) : Result<Model>(std::move(model));
  });
}

Status SymbolicModel::save(const std::filesystem::path& path) const {
  return without_exceptions([&]() -> Status {
    if (path.extension() != ".relay")
      return usage_error("{}: a module's name ends in .relay", path.string());
    return impl_->module.save(path);
  });
}

}  // namespace collage
