#include "backend/targets/backends.h"
#include "base/files.h"
#include "base/no_exceptions.h"
#include "base/stopwatch.h"
#include "compiler/model_stages.h"
#include "frontend/onnx/importer.h"
#include "frontend/script/script.h"
#include "frontend/script/symbolic_module.h"
#include "passes/inline_functions.h"
#include "passes/passes.h"
#include "passes/widen_halves.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

Model no_model() { return Model(std::make_shared<internal::ModelImpl>()); }

Result<ImportedModel> import_text(const std::filesystem::path& path, const LoadOptions& options) {
  if (!options.constants.empty())
    return usage_error("{}: constants are part of the text and cannot be given", path.string());
  ParseOptions parse;
  parse.folder = path.parent_path();
  const std::string text = TRY(read_file(path));
  ImportedModel imported;
  imported.module =
      TRY(instance_of_text(text, parse, options.shapes, options.dims).with_context(path.string()));
  return imported;
}

// As it was imported. Text names no outputs, and inputs by their parameters alone.
Result<Model> imported_model(ImportedModel imported) {
  Model model = TRY(staged_model(no_model(), std::move(imported.module)));
  internal::ModelImpl& impl = model.impl();
  for (size_t i = 0; i < imported.input_names.size(); ++i)
    impl.inputs.at(i).name = imported.input_names[i];
  for (size_t i = 0; i < imported.output_names.size(); ++i)
    impl.outputs.at(i).name = imported.output_names[i];
  return model;
}

}  // namespace

Result<Module> instance_of_text(const std::string& text, const ParseOptions& options,
                                const std::map<std::string, Shape>& shapes,
                                const std::map<std::string, int64_t>& dims) {
  Result<Module> module = tensor_program::parse_module_text(text, options);
  if (module.ok() && shapes.empty() && dims.empty()) return module;
  const auto symbolic = TRY(tensor_program::SymbolicModule::parse(text, options));
  if (symbolic.symbols().empty()) {
    if (!module.ok()) return module;
    return usage_error("shapes are part of the text and cannot be given");
  }
  return symbolic.instantiate(TRY(symbolic.bind(shapes, dims)));
}

Result<Model> simplified(const Model& model) {
  TRY(check_verified(model));
  const Stopwatch watch;
  Module module = model.impl().module;
  std::optional<Module> in_halves = model.impl().in_halves;
  if (!in_halves && coarsest_half(module)) {
    TRY(inline_functions(module));  // the interpreter runs operators alone
    TRY(tensor_program::link_programs(module));
    in_halves = module;
  }
  TRY(simplification_pipeline().run(module));
  Model result = TRY(staged_model(model, std::move(module)));
  result.impl().in_halves = std::move(in_halves);
  result.impl().simplify_seconds += watch.seconds();
  return result;
}

Result<Model> simplified_model(ImportedModel imported) {
  return simplified(TRY(imported_model(std::move(imported))));
}

static Result<Model> load_and_simplify(const std::filesystem::path& path,
                                       const LoadOptions& options) {
  register_all();
  const Stopwatch watch;
  ImportedModel imported = tensor_program::is_module_text(path)
                               ? TRY(import_text(path, options))
                               : TRY(import_onnx(path, import_options(options)));
  const double seconds = watch.seconds();
  Model model = TRY(imported_model(std::move(imported)).with_context(path.string()));
  if (options.simplify) model = TRY(simplified(model));
  model.impl().path = path;
  model.impl().import_seconds = seconds;
  return model;
}

ImportOptions import_options(const LoadOptions& options) {
  return {options.shapes, options.dims, options.constants, 0, options.data_roots};
}

Result<Model> load_model(const std::filesystem::path& path, const LoadOptions& options) {
  return without_exceptions([&] { return load_and_simplify(path, options); });
}

Model model_of(const Module& module) { return staged_model(no_model(), module).value(); }

Result<Module> load_text_as_is(const std::filesystem::path& path,
                               std::unordered_set<const void*>& unknown, bool positions) {
  ParseOptions options;
  options.positions = positions;
  options.constant = [&](const TensorType& type, size_t) -> Result<Tensor> {
    Tensor value = TRY(Tensor::allocate(type.dtype, type.shape));
    unknown.insert(value.raw());
    return value;
  };
  Module module = TRY(tensor_program::load_module_text(path, options));
  if (module.functions.count("main") == 0)
    return bad_model("{}: there is no function @main", path.string());
  return module;
}

Result<Model> Model::load(const std::filesystem::path& path, const LoadOptions& options) {
  return load_model(path, options);
}
const std::vector<TensorInfo>& Model::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& Model::outputs() const { return impl_->outputs; }

}  // namespace collage
