// The graph of models: functions, and calls replaced (collage/module.h).
#include <collage/module.h>

#include "base/no_exceptions.h"
#include "compiler/model_stages.h"
#include "ir/matcher.h"
#include "ir/op.h"
#include "ir/pattern_text.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "passes/pass.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

std::string site_of(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  const std::string what = call == nullptr       ? "a value"
                           : call->op == nullptr ? "a call of a function"
                                                 : "a call of " + call->op->name;
  return expr->origin().empty() ? what : fmt::format("{} (from '{}')", what, expr->origin());
}

/// What was given in place of `expr`: nothing, or an expression of its type.
Result<Expr> replaced(const Expr& expr, Result<std::optional<Expression>> replacement) {
  const std::optional<Expression> given = TRY(std::move(replacement).with_context(site_of(expr)));
  if (!given) return expr;
  if (!(given->node()->type() == expr->type()))
    return bad_model("{}: its replacement is a {}, not a {}", site_of(expr), given->type(),
                     expr->type().to_string());
  return given->node();
}

Result<Model> unverified_model(const Model& like, Module module) {
  Model model = TRY(staged_model(like, std::move(module)));
  model.impl().unverified = true;
  return model;
}

Result<Model> rewrite_functions(const Model& model, const char* name,
                                const std::function<Result<Function>(const Function&)>& rewrite) {
  return without_exceptions([&]() -> Result<Model> {
    TRY(check_verified(model));
    Module module = model.impl().module;
    if (!TRY(function_pass(name, rewrite).run(module))) return model;
    return unverified_model(model, std::move(module));
  });
}

/// What each $name of the pattern matched.
std::map<std::string, Expression> named(const Match& match) {
  std::map<std::string, Expression> values;
  for (const auto& [node, expr] : match.bindings)
    if (node->kind == PatternKind::kNamed) values.emplace(node->names[0], Expression(expr));
  return values;
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
  return rewrite_functions(model, "rewrite_calls", [&](const Function& function) {
    Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
      if (rebuilt->kind() != ExprKind::kCall) return rebuilt;
      return replaced(rebuilt, replace(Expression(rebuilt)));
    });
    return rewriter.rewrite(function);
  });
}

Result<Model> rewrite_matches(const Model& model, const std::string& pattern,
                              const ReplaceMatch& replace) {
  const DFPattern parsed = TRY(parse_pattern(pattern));
  return rewrite_functions(model, "rewrite_matches", [&](const Function& function) {
    Uses uses(function);
    const UseCount count = [&](const ExprNode* node) { return uses.of(node); };
    Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
      uses.replace(original, rebuilt);
      const std::optional<Match> found = match(parsed, rebuilt, count);
      if (!found) return rebuilt;
      const Expr result = TRY(replaced(rebuilt, replace({Expression(rebuilt), named(*found)})));
      uses.replace(rebuilt, result);
      return result;
    });
    return rewriter.rewrite(function);
  });
}

}  // namespace collage
