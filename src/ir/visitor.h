// Traversal and rewriting of expressions. Both are iterative in post-dfs order, so that graphs may
// be arbitrarily deep, and visit each shared node once. Function literals that are called are
// opaque to `post_order` (their bodies are graphs of their own).
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace collage {

// Direct dataflow inputs: arguments of a call (and its callee when that is a function literal or
// global), fields, the tuple.
std::vector<Expr> expr_inputs(const Expr& expr);

// Returns every node reachable from `root` in post-dfs order (inputs first, `root` last), without
// entering function bodies. The order is that of the arguments, so it is deterministic.
std::vector<Expr> post_order(const Expr& root);

// Rebuilds `root` bottom-up. `rewrite` gets each original node together with the same node over
// already rewritten inputs and returns its replacement (the second argument itself to keep it).
// Unchanged sub-expressions keep their identity.
class Rewriter {
 public:
  using Rule = std::function<Result<Expr>(const Expr& original, const Expr& rebuilt)>;
  explicit Rewriter(Rule rule) : rule_(std::move(rule)) {}
  Result<Expr> rewrite(const Expr& root);
  // Returns the function with a rewritten body; the same pointer if nothing changed.
  Result<Function> rewrite(const Function& function);
  bool changed() const { return changed_; }

 private:
  Rule rule_;
  std::unordered_map<const ExprNode*, Expr> memo_;
  bool changed_ = false;
};

// Returns `expr` with some nodes replaced (usually parameters by arguments).
Result<Expr> substitute(const Expr& root,
                        const std::unordered_map<const ExprNode*, Expr>& replacements);
// Returns `expr` over other inputs (as many as expr_inputs returns), types inferred again.
Result<Expr> with_inputs(const Expr& expr, const std::vector<Expr>& inputs);
// Returns the function with calls of function literals (composites, primitives) replaced by their
// bodies, recursively: a flat graph of operator calls.
Result<Function> inline_calls(const Function& function);

}  // namespace collage
