#include "passes/rewrite_rules.h"

#include "ir/visitor.h"

namespace collage {

namespace {

constexpr int kMaxRounds = 10;  // over the whole function
constexpr int kMaxSteps = 16;   // at one node in one round

}  // namespace

Uses::Uses(const Function& function) {
  for (const Expr& expr : post_order(function->body)) {
    for (const Expr& input : expr_inputs(expr)) ++counts_[input.get()];
    keep_.push_back(expr);
  }
  ++counts_[function->body.get()];
}

size_t Uses::of(const ExprNode* expr) const {
  auto it = counts_.find(expr);
  return it == counts_.end() ? 1 : it->second;
}

void Uses::replace(const Expr& original, const Expr& replacement) {
  if (original == replacement) return;
  size_t count = of(original);
  counts_[replacement.get()] += count;
  keep_.push_back(replacement);
}

Result<Function> apply_rules(const Function& function, std::span<const RewriteRule> rules) {
  std::unordered_map<std::string_view, std::vector<const RewriteRule*>> by_root;
  for (const RewriteRule& rule : rules)
    for (std::string_view root : rule.roots) by_root[root].push_back(&rule);
  Function current = function;
  for (int round = 0; round < kMaxRounds; ++round) {
    Uses uses(current);
    Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
      uses.replace(original, rebuilt);
      Expr expr = rebuilt;
      for (int step = 0; step < kMaxSteps; ++step) {
        const auto* call = as<CallNode>(expr);
        std::string_view root;
        if (call != nullptr && call->op != nullptr) root = call->op->name;
        if (expr->kind() == ExprKind::kTupleGetItem) root = kProjection;
        auto candidates = by_root.find(root);
        if (root.empty() || candidates == by_root.end()) return expr;
        Expr next;
        for (const RewriteRule* rule : candidates->second) {
          Result<Expr> result = rule->apply(expr, uses);
          if (!result)
            return std::move(result).status().with_context(fmt::format("rule '{}'", rule->name));
          if (*result == nullptr) continue;
          next = *result;
          if (!(next->type() == expr->type()))
            return internal_error("rule '{}' changed the type {} to {}", rule->name,
                                  expr->type().to_string(), next->type().to_string());
          break;
        }
        if (next == nullptr) return expr;
        uses.replace(expr, next);
        expr = std::move(next);
      }
      return expr;
    });
    Function next = TRY(rewriter.rewrite(current));
    if (next == current) break;
    current = std::move(next);
  }
  return current;
}

Result<Expr> remake(const CallNode& like, std::vector<Expr> args) {
  return remake(like, std::move(args), like.attrs);
}

Result<Expr> remake(const CallNode& like, std::vector<Expr> args, Attrs attrs) {
  return make_call(*like.op, std::move(args), std::move(attrs), like.origin());
}

}  // namespace collage
