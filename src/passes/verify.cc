#include "passes/verify.h"

#include <unordered_map>
#include <unordered_set>

#include "base/printable.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

constexpr int kMaxDepth = 32;

// What the rules may look at besides the node.
struct Scope {
  const Module& module;
  std::unordered_set<const ExprNode*> params;  // of the function being walked
};

Status operator_is_registered(const Expr& expr, const Scope&) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op == nullptr || find_op(call->op->name) == call->op) return {};
  return internal_error("operator '{}' is not the registered one", call->op->name);
}

Status call_has_one_callee(const Expr& expr, const Scope&) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || (call->op != nullptr) != (call->callee != nullptr)) return {};
  return internal_error("a call needs an operator or a function, not both");
}

Status variable_is_bound(const Expr& expr, const Scope& scope) {
  if (expr->kind() != ExprKind::kVar || scope.params.count(expr.get()) != 0) return {};
  return internal_error("variable %{} is no parameter of its function", as<VarNode>(expr)->name);
}

Status type_is_as_inferred(const Expr& expr, const Scope&) {
  if (expr->kind() != ExprKind::kCall && expr->kind() != ExprKind::kTuple &&
      expr->kind() != ExprKind::kTupleGetItem)
    return {};
  Expr again = TRY(with_inputs(expr, expr_inputs(expr)));
  if (again->type() == expr->type()) return {};
  return internal_error("type {} is inferred again as {}", expr->type().to_string(),
                        again->type().to_string());
}

Status attributes_are_normalised(const Expr& expr, const Scope&) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op == nullptr ||
      TRY(call->op->normalise(call->attrs)) == call->attrs)
    return {};
  return internal_error("attributes lack defaults");
}

Status constant_has_a_value(const Expr& expr, const Scope&) {
  const auto* constant = as<ConstantNode>(expr);
  if (constant == nullptr || constant->value.defined()) return {};
  return internal_error("a constant has no storage");
}

Status global_exists_with_its_type(const Expr& expr, const Scope& scope) {
  const auto* global = as<GlobalVarNode>(expr);
  if (global == nullptr) return {};
  auto function = scope.module.functions.find(global->name);
  if (function != scope.module.functions.end())
    return function->second->type() == global->type()
               ? Status()
               : internal_error("@{} is used with another type", global->name);
  auto other = scope.module.abstract_functions.find(global->name);
  if (other == scope.module.abstract_functions.end())
    return internal_error("@{} is not in the module", global->name);
  return other->second->type() == global->type()
             ? Status()
             : internal_error("@{} is used with another type", global->name);
}

struct Rule {
  const char* name;
  Status (*check)(const Expr& expr, const Scope& scope);
};
constexpr Rule kRules[] = {
    {"operator is registered", operator_is_registered},
    {"call has one callee", call_has_one_callee},
    {"variable is bound", variable_is_bound},
    {"attributes are normalised", attributes_are_normalised},
    {"constant has a value", constant_has_a_value},
    {"global exists with its type", global_exists_with_its_type},
    {"type is as inferred", type_is_as_inferred},
};

std::string describe(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  std::string what = call != nullptr && call->op != nullptr ? call->op->name : "node";
  return expr->origin().empty() ? what : fmt::format("{} (from '{}')", what, expr->origin());
}

Status verify_function(const FunctionNode& function, const Module& module,
                       std::unordered_set<const ExprNode*>& verified,
                       std::unordered_set<const ExprNode*>& all_params, int depth) {
  if (!verified.insert(&function).second) return {};
  if (depth > kMaxDepth) return internal_error("functions nested more than {} deep", kMaxDepth);
  Scope scope{module, {}};
  for (const Expr& param : function.params) {
    if (param->kind() != ExprKind::kVar) return internal_error("a parameter is no variable");
    if (!all_params.insert(param.get()).second)
      return internal_error("%{} is a parameter twice", as<VarNode>(param)->name);
    scope.params.insert(param.get());
  }
  for (const Expr& expr : post_order(function.body)) {
    for (const Rule& rule : kRules) {
      Status status = rule.check(expr, scope);
      if (!status)
        return internal_error("{}: rule '{}': {}", describe(expr), rule.name, status.to_string());
    }
    if (const auto* inner = as<FunctionNode>(expr))
      TRY(verify_function(*inner, module, verified, all_params, depth + 1));
  }
  return {};
}

}  // namespace

Status verify(const Module& module) {
  std::unordered_set<const ExprNode*> verified, all_params;
  for (const auto& [name, function] : module.functions) {
    if (module.abstract_functions.count(name) != 0)
      return internal_error("@{} is defined twice", name);
    Status status = verify_function(*function, module, verified, all_params, 1);
    if (!status) return std::move(status).with_context("@" + name);
  }
  for (const auto& [symbol, mod] : module.external_mods)
    TRY(check_external_mod(mod).with_context("external module " + printable(symbol)));
  return {};
}

}  // namespace collage
