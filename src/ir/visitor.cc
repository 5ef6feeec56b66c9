#include "ir/visitor.h"

#include <unordered_set>

#include "base/check.h"

namespace collage {

std::vector<Expr> expr_inputs(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kCall: {
      const auto* call = as<CallNode>(expr);
      std::vector<Expr> inputs = call->args;
      if (call->callee) inputs.push_back(call->callee);
      return inputs;
    }
    case ExprKind::kTuple:
      return as<TupleNode>(expr)->fields;
    case ExprKind::kTupleGetItem:
      return {as<TupleGetItemNode>(expr)->tuple};
    default:
      return {};
  }
}

std::vector<Expr> post_order(const Expr& root) {
  std::vector<Expr> order;
  std::unordered_set<const ExprNode*> seen;
  struct Frame {
    Expr expr;
    std::vector<Expr> inputs;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  seen.insert(root.get());
  stack.push_back({root, expr_inputs(root)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.inputs.size()) {
      Expr input = top.inputs[top.next++];
      if (seen.insert(input.get()).second) stack.push_back({input, expr_inputs(input)});
    } else {
      order.push_back(std::move(top.expr));
      stack.pop_back();
    }
  }
  return order;
}

Result<Expr> with_inputs(const Expr& expr, const std::vector<Expr>& inputs) {
  switch (expr->kind()) {
    case ExprKind::kCall: {
      const auto* call = as<CallNode>(expr);
      if (call->op != nullptr) return make_call(*call->op, inputs, call->attrs, expr->origin());
      std::vector<Expr> args(inputs.begin(), inputs.end() - 1);
      return make_function_call(inputs.back(), std::move(args), expr->origin());
    }
    case ExprKind::kTuple:
      return make_tuple(inputs);
    case ExprKind::kTupleGetItem:
      return make_tuple_get_item(inputs.at(0), as<TupleGetItemNode>(expr)->index);
    default:
      COLLAGE_CHECK(inputs.empty(), "this kind of expression has no inputs");
      return expr;
  }
}

Result<Expr> Rewriter::rewrite(const Expr& root) {
  for (const Expr& expr : post_order(root)) {
    if (memo_.count(expr.get()) != 0) continue;
    std::vector<Expr> inputs = expr_inputs(expr);
    bool same = true;
    for (Expr& input : inputs) {
      const Expr& replacement = memo_.at(input.get());
      same = same && replacement == input;
      input = replacement;
    }
    Expr rebuilt = same ? expr : TRY(with_inputs(expr, inputs));
    Expr result = TRY(rule_(expr, rebuilt));
    changed_ = changed_ || result != expr;
    memo_.emplace(expr.get(), std::move(result));
  }
  return memo_.at(root.get());
}

Result<Function> Rewriter::rewrite(const Function& function) {
  Expr body = TRY(rewrite(function->body));
  if (body == function->body) return function;
  return make_function(function->params, std::move(body), function->attrs);
}

Result<Expr> substitute(const Expr& root,
                        const std::unordered_map<const ExprNode*, Expr>& replacements) {
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    auto it = replacements.find(original.get());
    return it == replacements.end() ? rebuilt : it->second;
  });
  return rewriter.rewrite(root);
}

Result<Function> inline_calls(const Function& function) {
  Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr || as<FunctionNode>(call->callee) == nullptr) return rebuilt;
    Function callee = TRY(inline_calls(std::static_pointer_cast<const FunctionNode>(call->callee)));
    std::unordered_map<const ExprNode*, Expr> bindings;
    for (size_t i = 0; i < callee->params.size(); ++i)
      bindings[callee->params[i].get()] = call->args[i];
    return substitute(callee->body, bindings);
  });
  return rewriter.rewrite(function);
}

}  // namespace collage
