#include "compiler/codegen.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "artifact/write_artifact.h"
#include "backend/backend.h"
#include "base/files.h"
#include "base/no_exceptions.h"
#include "base/scratch_folder.h"
#include "compiler/compile.h"
#include "compiler/model_stages.h"
#include "partition/stated_kernels.h"
#include "passes/dead_code.h"
#include "tensor_program/external.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

namespace fs = std::filesystem;

// A model whose @main calls the function alone.
Result<Model> calling(const Module& module, const std::string& name) {
  const Function& function = module.functions.at(name);
  std::vector<Expr> params;
  for (const Expr& param : function->params)
    params.push_back(make_var(as<VarNode>(param)->name, param->type()));
  const Expr call = TRY(make_function_call(make_global_var(name, function->type()), params));
  Module alone = module;
  alone.functions["main"] = make_function(std::move(params), call);
  TRY(remove_dead_code(alone));
  Model model = TRY(staged_model(Model(std::make_shared<internal::ModelImpl>()), std::move(alone)));
  model.impl().is_part = true;
  return model;
}

// The bytes of an artifact that holds the plan.
Result<Tensor> code_of(const internal::CompiledProgram& program) {
  std::error_code none;
  const ScratchFolder folder =
      TRY(ScratchFolder::create(fs::temp_directory_path(none), "collage-codegen-"));
  PlanFacts facts;
  facts.threads = program.threads;
  facts.any_threads = program.any_threads;
  facts.max_error = program.max_error;
  if (!program.features.empty()) facts.features = program.features;
  const fs::path file = folder.path() / "code";
  TRY(write_artifact(file, *program.plan, facts, {}));
  const std::string bytes = TRY(read_file(file));
  Tensor code = TRY(Tensor::allocate(DType::kUInt8, {static_cast<int64_t>(bytes.size())}));
  std::memcpy(code.raw(), bytes.data(), bytes.size());
  return code;
}

// The ways to compute a model of one call of a kernel.
Result<std::vector<Variant>> variants_of(const Model& model, const Target& target,
                                         const ProgramOptions& options) {
  const Model flat = TRY(linked(model));
  const FunctionNode* kernel = called_primitive(flat.impl().module.main()->body);
  CompileOptions compile;
  compile.threads = ThreadTeam(options.threads).size();
  const Function function = make_function(kernel->params, kernel->body, kernel->attrs);
  Result<std::vector<Variant>> variants = without_exceptions(
      [&] { return find_backend(target.kind)->variants(function, target, compile); });
  if (variants) return variants;
  return unsupported("{} does not take it: {}", target.to_string(), variants.status().to_string());
}

Result<ExternalMod> compiled_kernel(const Model& model, const Target& target,
                                    const ProgramOptions& options) {
  const Program program = TRY(compile_model(model, options));
  const CompileReport& report = program.impl().report;
  if (report.kernels.size() != 1 || report.kernels[0].target != target.to_string())
    return unsupported("no kernel of {} computes it rightly", target.to_string());
  return ExternalMod{target.to_string(), report.kernels[0].variant.to_string(),
                     make_constant(TRY(code_of(program.impl())))};
}

// By the variant that a compilation takes or, where that cannot be saved (opaque layouts), by the
// first that can.
Result<ExternalMod> compiled_function(const Module& module, const std::string& name,
                                      const Target& target, const ProgramOptions& options) {
  const Model model = TRY(calling(module, name));
  const std::vector<Variant> variants = TRY(variants_of(model, target, options));
  Result<ExternalMod> best = compiled_kernel(model, target, options);
  if (best.ok() || best.status().code() != ErrorCode::kUnsupported) return best;
  Module stated = module;
  for (const Variant& variant : variants) {
    Function& function = stated.functions.at(name);
    Attrs attrs = function->attrs;
    const Attrs statement = stated_kernel(target, variant.to_string());
    for (const auto& [attr, value] : statement.entries()) attrs.set(attr, value);
    function = make_function(function->params, function->body, std::move(attrs));
    Result<ExternalMod> other = compiled_kernel(TRY(calling(stated, name)), target, options);
    if (other) return other;
  }
  return best;
}

}  // namespace

Result<Module> generate_code(const Module& module, const PartitionSpec& spec,
                             const ProgramOptions& options) {
  Module result = module;
  std::set<std::string> labels = tensor_program::declared_labels(module);  // taken
  for (const auto& [symbol, mod] : module.external_mods) labels.insert(symbol);
  for (const auto& [name, function] : module.functions) {
    if (name == "main" || !function->attrs.has("Primitive") ||
        text_attr(function->attrs, "Compiler") != toolchain_of(spec))
      continue;
    ExternalMod mod =
        TRY(compiled_function(module, name, spec.target, options).with_context("@" + name));
    std::string wanted = text_attr(function->attrs, "global_symbol"), symbol;
    if (wanted.empty()) wanted = name;
    for (int i = 0; symbol.empty() || tensor_program::find_external(symbol) != nullptr ||
                    !labels.insert(symbol).second;
         ++i)
      symbol = i == 0 ? wanted : fmt::format("{}_{}", wanted, i);
    tensor_program::ExternalDeclaration declaration{symbol, {}, function->result_type()};
    for (const Expr& param : function->params) declaration.params.push_back(param->type());
    result.functions.erase(name);
    result.abstract_functions[name] =
        TRY(tensor_program::external_function(std::move(declaration)));
    result.external_mods[symbol] = std::move(mod);
  }
  return result;
}

}  // namespace collage
