#include "compiler/model_stages.h"

#include <unordered_map>

#include "backend/targets/backends.h"
#include "passes/attention.h"
#include "passes/inline_functions.h"
#include "passes/verify.h"
#include "tensor_program/defined_operator.h"
#include "tensor_program/module_programs.h"

namespace collage {

Result<Model> staged_model(const Model& like, Module module) {
  const auto main = module.functions.find("main");
  if (main == module.functions.end()) return bad_model("there is no function @main");
  const internal::ModelImpl& before = like.impl();
  std::unordered_map<const ExprNode*, std::string> names;
  if (const auto old = before.module.functions.find("main"); old != before.module.functions.end())
    for (size_t i = 0; i < old->second->params.size(); ++i)
      names[old->second->params[i].get()] = before.inputs.at(i).name;

  auto impl = std::make_shared<internal::ModelImpl>();
  impl->path = before.path;
  impl->is_part = before.is_part;
  impl->import_seconds = before.import_seconds;
  impl->simplify_seconds = before.simplify_seconds;
  for (const Expr& param : main->second->params) {
    const std::string& own = as<VarNode>(param)->name;
    if (!param->type().is_tensor())
      return bad_model("@main takes %{}, a {}: inputs are tensors", own, param->type().to_string());
    const auto known = names.find(param.get());
    impl->inputs.push_back({known != names.end() ? known->second : own, param->tensor_type().shape,
                            param->tensor_type().dtype});
  }
  if (main->second->result_type().is_function()) return bad_model("@main gives a function");
  const std::vector<TensorType> leaves = main->second->result_type().leaves();
  for (size_t i = 0; i < leaves.size(); ++i)
    impl->outputs.push_back({leaves.size() == before.outputs.size() ? before.outputs[i].name
                                                                    : fmt::format("output{}", i),
                             leaves[i].shape, leaves[i].dtype});
  impl->module = std::move(module);
  return Model(std::move(impl));
}

Status check_verified(const Model& model) {
  if (!model.impl().unverified) return {};
  const Status status = verify(model.impl().module);
  return status.ok() ? Status() : bad_model("{}", status.to_string());
}

Result<Model> equivalent_model(const Model& like, Module module) {
  Model result = TRY(staged_model(like, std::move(module)));
  result.impl().in_halves = like.impl().in_halves;
  return result;
}

Result<Model> linked(const Model& model) {
  register_all();
  TRY(check_verified(model));
  Module module = model.impl().module;
  bool changed = TRY(inline_functions(module));
  changed = TRY(tensor_program::link_programs(module)) || changed;
  changed =
      TRY(function_pass("expand_defined", tensor_program::expand_defined).run(module)) || changed;
  return changed ? equivalent_model(model, std::move(module)) : model;
}

Result<Model> in_strict_form(const Model& model) {
  Module module = model.impl().module;
  const bool changed = TRY(function_pass("expand_attention", expand_attention).run(module));
  return changed ? equivalent_model(model, std::move(module)) : model;
}

}  // namespace collage
