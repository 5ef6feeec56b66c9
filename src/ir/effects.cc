#include "ir/effects.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

Result<Expr> first_leaf(Expr value) {
  while (value->type().is_tuple()) value = TRY(make_tuple_get_item(value, 0));
  return value;
}

// The value, each tensor of it once `before` is computed.
Result<Expr> after(const Expr& value, const Expr& before) {
  if (value->type().is_tensor()) return make_call(kAfterOp, {value, before}, {}, value->origin());
  const auto* tuple = as<TupleNode>(value);
  std::vector<Expr> fields;
  for (size_t i = 0; i < value->type().fields().size(); ++i) {
    const Expr field = tuple != nullptr ? tuple->fields[i]
                                        : TRY(make_tuple_get_item(value, static_cast<int64_t>(i)));
    fields.push_back(TRY(after(field, before)));
  }
  return make_tuple(std::move(fields));
}

class Ordering {
 public:
  Ordering(Module& module, const CallsOfText& calls) : module_(module), calls_(calls) {}

  Status run() {
    for (size_t known = names_.size() + 1; known != names_.size();) {
      known = names_.size();
      for (const auto& [name, function] : module_.functions)
        if (calls_effects(function)) names_.insert(name);
    }
    for (auto& [name, function] : module_.functions)
      if (names_.count(name) != 0)
        function = TRY(ordered(function, name != "main").with_context("@" + name));
    return {};
  }

 private:
  bool calls_effects(const Function& function) {
    const auto found = calls_.find(function);
    return found != calls_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                [&](const Expr& call) { return has(call); });
  }

  bool has(const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) return false;
    if (call->op != nullptr)
      return has_effects(*call) ||
             std::any_of(call->args.begin(), call->args.end(), [&](const Expr& arg) {
               return arg->kind() == ExprKind::kFunction && literal_has(arg);
             });
    if (call->callee->kind() == ExprKind::kFunction) return literal_has(call->callee);
    const auto* global = as<GlobalVarNode>(call->callee);
    if (global == nullptr) return false;
    const auto other = module_.abstract_functions.find(global->name);
    if (other != module_.abstract_functions.end()) return other->second->has_effects();
    return names_.count(global->name) != 0;
  }
  bool literal_has(const Expr& literal) {
    return calls_effects(std::static_pointer_cast<const FunctionNode>(literal));
  }

  Result<Function> ordered(const Function& function, bool is_called) {
    // How many of parameters (as one), then calls with effects in order, a value depends on.
    std::unordered_map<const ExprNode*, size_t> levels;
    size_t level = 0;
    Expr last;
    if (is_called && !function->params.empty()) {
      for (const Expr& param : function->params) levels[param.get()] = 1;
      level = 1;
      last = TRY(first_leaf(function->params[0]));
    }
    const auto level_of = [&](const Expr& expr) {
      size_t& known = levels[expr.get()];
      for (const Expr& input : expr_inputs(expr)) known = std::max(known, levels[input.get()]);
      return known;
    };
    Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
      if (original->kind() == ExprKind::kFunction && literal_has(original))
        return Expr(TRY(ordered(std::static_pointer_cast<const FunctionNode>(original), true)));
      const size_t own = level_of(rebuilt);
      if (!has(original)) return rebuilt;
      const Expr made = own < level ? TRY(waiting(rebuilt, last)) : rebuilt;
      levels[made.get()] = ++level;
      last = TRY(first_leaf(made));
      levels[last.get()] = level;
      return made;
    });
    for (const Expr& call : calls_.at(function))
      if (has(call)) TRY(rewriter.rewrite(call));
    Expr body = TRY(rewriter.rewrite(function->body));
    if (level_of(body) < level) body = TRY(after(body, last));
    return make_function(function->params, std::move(body), function->attrs);
  }

  // The call with its arguments behind `last`: of an operator or an external function the first.
  Result<Expr> waiting(const Expr& expr, const Expr& last) {
    const auto* call = as<CallNode>(expr);
    std::vector<Expr> args = call->args;
    if (args.empty()) {
      const auto* global = as<GlobalVarNode>(call->callee);
      return bad_model("{} has effects and stands behind others that do, so it needs an argument",
                       global != nullptr ? "@" + global->name : "a call");
    }
    const auto* global = as<GlobalVarNode>(call->callee);
    const bool one = call->op != nullptr ||
                     (global != nullptr && module_.abstract_functions.count(global->name) != 0);
    for (size_t i = 0; i < (one ? 1 : args.size()); ++i) args[i] = TRY(after(args[i], last));
    if (call->op != nullptr) return make_call(*call->op, args, call->attrs, expr->origin());
    return make_function_call(call->callee, std::move(args), expr->origin());
  }

  Module& module_;
  const CallsOfText& calls_;
  std::set<std::string> names_;  // of functions with effects
};

}  // namespace

bool has_effects(const CallNode& call) {
  const auto* flag = std::get_if<bool>(call.attrs.find(kEffectsAttr));
  return flag != nullptr && *flag;
}

bool runs_functions(const CallNode& call) {
  return std::any_of(call.args.begin(), call.args.end(),
                     [](const Expr& arg) { return arg->kind() == ExprKind::kFunction; });
}

Status order_effects(Module& module, const CallsOfText& calls) {
  return Ordering(module, calls).run();
}

}  // namespace collage
