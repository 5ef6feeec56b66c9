// The graph of models: functions, and calls replaced (collage/module.h).
#include <collage/module.h>

#include "base/no_exceptions.h"
#include "compiler/model_stages.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "passes/pass.h"

namespace collage {

namespace {

std::string site_of(const CallNode& call) {
  const std::string what = call.op != nullptr ? call.op->name : "a function";
  return call.origin().empty() ? fmt::format("a call of {}", what)
                               : fmt::format("a call of {} (from '{}')", what, call.origin());
}

Result<Expr> replaced(const Expr& expr, const ReplaceCall& replace) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr) return expr;
  const Result<std::optional<Expression>> replacement =
      replace(Expression(expr)).with_context(site_of(*call));
  if (!replacement.ok()) return replacement.status();
  const std::optional<Expression>& given = replacement.value();
  if (!given) return expr;
  if (!(given->node()->type() == expr->type()))
    return bad_model("{}: its replacement is a {}, not a {}", site_of(*call), given->type(),
                     expr->type().to_string());
  return given->node();
}

Result<Model> unverified_model(const Model& like, Module module) {
  Model model = TRY(staged_model(like, std::move(module)));
  model.impl().unverified = true;
  return model;
}

}  // namespace

Result<Expression> graph_function(const Model& model, const std::string& name) {
  const auto& functions = model.impl().module.functions;
  const auto found = functions.find(name);
  if (found == functions.end()) return usage_error("the module has no graph function @{}", name);
  return Expression(found->second);
}

Result<Expression> global_function(const Model& model, const std::string& name) {
  const Module& module = model.impl().module;
  if (const auto found = module.functions.find(name); found != module.functions.end())
    return Expression(make_global_var(name, found->second->type()));
  const auto found = module.abstract_functions.find(name);
  if (found == module.abstract_functions.end())
    return usage_error("the module has no function @{}", name);
  return Expression(make_global_var(name, found->second->type()));
}

Result<ModelWork> model_work(const Model& model) {
  return without_exceptions([&]() -> Result<ModelWork> {
    const Expression main = TRY(graph_function(model, "main"));
    const Function function = std::static_pointer_cast<const FunctionNode>(main.node());
    return ModelWork{function_flops(function), function_bytes(function)};
  });
}

Result<Model> with_function(const Model& model, const std::string& name,
                            const Expression& function) {
  return without_exceptions([&]() -> Result<Model> {
    if (function.kind() != Expression::Kind::kFunction)
      return bad_model("@{} is to be a function, not a {}", name, function.type());
    Module module = model.impl().module;
    module.functions[name] = std::static_pointer_cast<const FunctionNode>(function.node());
    return unverified_model(model, std::move(module));
  });
}

Result<Model> rewrite_calls(const Model& model, const ReplaceCall& replace) {
  return without_exceptions([&]() -> Result<Model> {
    TRY(check_verified(model));
    Module module = model.impl().module;
    const Pass pass =
        function_pass("rewrite_calls", [&](const Function& function) -> Result<Function> {
          Rewriter rewriter(
              [&](const Expr&, const Expr& rebuilt) { return replaced(rebuilt, replace); });
          return rewriter.rewrite(function);
        });
    if (!TRY(pass.run(module))) return model;
    return unverified_model(model, std::move(module));
  });
}

}  // namespace collage
