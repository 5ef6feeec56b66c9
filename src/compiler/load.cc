#include "base/no_exceptions.h"
#include "base/stopwatch.h"
#include "compiler/compile.h"
#include "frontend/onnx/importer.h"
#include "ir/text_parser.h"
#include "passes/passes.h"
#include "passes/widen_halves.h"
#include "targets/backends.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

// Inputs by their parameters, outputs by their positions: text has no other names.
void name_interface(ImportedModel& imported) {
  for (const Expr& param : imported.module.main()->params)
    imported.input_names.push_back(as<VarNode>(param)->name);
  size_t outputs = imported.module.main()->result_type().leaves().size();
  for (size_t i = 0; i < outputs; ++i)
    imported.output_names.push_back("output" + std::to_string(i));
}

Result<ImportedModel> import_relay(const std::filesystem::path& path, const LoadOptions& options) {
  if (!options.shapes.empty() || !options.dims.empty() || !options.constants.empty())
    return usage_error("{}: shapes are part of Relay text and cannot be given", path.string());
  ImportedModel imported;
  ParseOptions parse;
  parse.abstract_function = tensor_program::abstract_function;
  imported.module = TRY(load_module(path, std::move(parse)));
  if (imported.module.functions.count("main") == 0)
    return bad_model("{}: there is no function @main", path.string());
  name_interface(imported);
  return imported;
}

// What the model says of its inputs and outputs.
void describe_interface(const ImportedModel& imported, internal::ModelImpl& impl) {
  const Function& main = imported.module.main();
  for (size_t i = 0; i < main->params.size(); ++i) {
    const TensorType& type = main->params[i]->tensor_type();
    impl.inputs.push_back({imported.input_names.at(i), type.shape, type.dtype});
  }
  std::vector<TensorType> leaves = main->result_type().leaves();
  for (size_t i = 0; i < leaves.size(); ++i)
    impl.outputs.push_back({imported.output_names.at(i), leaves[i].shape, leaves[i].dtype});
}

}  // namespace

Result<Model> simplified_model(ImportedModel imported) {
  auto impl = std::make_shared<internal::ModelImpl>();
  const Stopwatch watch;
  if (coarsest_half(imported.module)) {
    TRY(tensor_program::link_programs(imported.module));  // the interpreter runs linked ones
    impl->in_halves = imported.module;
  }
  TRY(simplification_pipeline().run(imported.module));
  impl->simplify_seconds = watch.seconds();
  describe_interface(imported, *impl);
  impl->module = std::move(imported.module);
  return Model(std::move(impl));
}

static Result<Model> load_and_simplify(const std::filesystem::path& path,
                                       const LoadOptions& options) {
  register_all();
  const Stopwatch watch;
  ImportOptions import;
  import.shapes = options.shapes;
  import.dims = options.dims;
  import.constants = options.constants;
  ImportedModel imported = path.extension() == ".relay" ? TRY(import_relay(path, options))
                                                        : TRY(import_onnx(path, import));
  const double seconds = watch.seconds();
  Model model = TRY(simplified_model(std::move(imported)));
  model.impl().path = path;
  model.impl().import_seconds = seconds;
  return model;
}

Result<Model> load_model(const std::filesystem::path& path, const LoadOptions& options) {
  return without_exceptions([&] { return load_and_simplify(path, options); });
}

Model model_of(const Module& module) {
  auto impl = std::make_shared<internal::ModelImpl>();
  ImportedModel named;
  named.module = module;
  name_interface(named);
  describe_interface(named, *impl);
  impl->module = module;
  return Model(std::move(impl));
}

Result<Module> load_text_as_is(const std::filesystem::path& path,
                               std::unordered_set<const void*>& unknown, bool positions) {
  ParseOptions options;
  options.positions = positions;
  options.abstract_function = tensor_program::abstract_function;
  options.constant = [&](const TensorType& type, size_t) -> Result<Tensor> {
    Tensor value = TRY(Tensor::allocate(type.dtype, type.shape));
    unknown.insert(value.raw());
    return value;
  };
  Module module = TRY(load_module(path, options));
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
