// Models as text (collage/module.h).
#include <collage/module.h>

#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "compiler/model_stages.h"
#include "frontend/script/script.h"
#include "ir/text_printer.h"
#include "passes/verify.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

Result<Module> read_text(const std::string& text, const std::vector<Tensor>& weights,
                         const std::map<std::string, int64_t>& dims) {
  ParseOptions options;
  if (!weights.empty())
    options.constant = [&](const TensorType& type, size_t index) -> Result<Tensor> {
      if (index >= weights.size() || !weights[index].defined())
        return bad_model("a {} that is not among the {} weights given", type.to_string(),
                         weights.size());
      return weights[index];
    };
  return instance_of_text(text, options, {}, dims);
}

PrintOptions print_options(const ModelTextOptions& options) {
  PrintOptions print;
  print.constants =
      options.values ? PrintOptions::Constants::kMeta : PrintOptions::Constants::kShapeOnly;
  print.show_types = options.types;
  return print;
}

}  // namespace

Result<Model> parse_model(const std::string& text, const std::vector<Tensor>& weights,
                          const std::map<std::string, int64_t>& dims) {
  return without_exceptions([&]() -> Result<Model> {
    register_all();
    Model model = TRY(staged_model(Model(std::make_shared<internal::ModelImpl>()),
                                   TRY(read_text(text, weights, dims))));
    TRY(verify_model(model));
    return model;
  });
}

Result<std::string> model_text(const Model& model, const ModelTextOptions& options) {
  return without_exceptions([&]() -> Result<std::string> {
    return to_text(TRY(tensor_program::named_programs(model.impl().module)),
                   print_options(options));
  });
}

Result<std::string> model_script(const Model& model, const ModelTextOptions& options) {
  return without_exceptions([&]() -> Result<std::string> {
    tensor_program::ScriptOptions print;
    if (!options.values) print.most_printed = PrintOptions().inline_limit;
    print.show_types = options.types;
    return tensor_program::to_script(TRY(tensor_program::named_programs(model.impl().module)),
                                     print);
  });
}

Result<std::vector<Tensor>> model_weights(const Model& model) {
  return without_exceptions([&]() -> Result<std::vector<Tensor>> {
    std::vector<Tensor> weights;
    PrintOptions print;
    print.constants = PrintOptions::Constants::kSideFile;
    print.inline_limit = -1;  // all of them, in the order of their numbers
    print.side_tensors = &weights;
    to_text(TRY(tensor_program::named_programs(model.impl().module)), print);
    return weights;
  });
}

Status save_model(const Model& model, const std::filesystem::path& path) {
  return without_exceptions([&]() -> Status {
    if (path.extension() != ".relay")
      return usage_error("{}: a module's name ends in .relay", path.string());
    return save_module(TRY(tensor_program::named_programs(model.impl().module)), path);
  });
}

Result<std::vector<ModuleFunction>> module_functions(const Model& model) {
  return without_exceptions([&]() -> Result<std::vector<ModuleFunction>> {
    using Kind = ModuleFunction::Kind;
    const Module module = TRY(tensor_program::named_programs(model.impl().module));
    std::vector<ModuleFunction> found;
    for (const auto& [name, function] : module.functions)
      found.push_back({name, Kind::kGraph, function->type().to_string()});
    for (const Kind kind : {Kind::kProgram, Kind::kExternal})
      for (const auto& [name, function] : module.abstract_functions)
        if ((function->kind_name() == "extern") == (kind == Kind::kExternal))
          found.push_back({name, kind, function->type().to_string()});
    return found;
  });
}

Result<std::vector<ExternalModule>> external_modules(const Model& model) {
  return without_exceptions([&]() -> Result<std::vector<ExternalModule>> {
    const Module module = TRY(tensor_program::named_programs(model.impl().module));
    std::vector<ExternalModule> found;
    for (const auto& [symbol, mod] : module.external_mods)
      found.push_back({symbol, mod.target, mod.variant, as<ConstantNode>(mod.code)->value});
    return found;
  });
}

Status verify_model(const Model& model) {
  return without_exceptions([&]() -> Status {
    const Status status = verify(model.impl().module);
    return status.ok() ? Status() : bad_model("{}", status.to_string());
  });
}

}  // namespace collage
