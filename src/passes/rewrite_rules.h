// Local rewrites: a pass is a table of named rules, each of which looks at one node and returns a
// cheaper or more regular one of the same type. Rules are tried in table order, bottom-up,
// repeatedly until none applies.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

// Counts how often each node of a function is used. A node made by a rule has the uses of what it
// replaces.
class Uses {
 public:
  explicit Uses(const Function& function);
  size_t of(const ExprNode* expr) const;
  size_t of(const Expr& expr) const { return of(expr.get()); }
  bool once(const Expr& expr) const { return of(expr) <= 1; }
  void replace(const Expr& original, const Expr& replacement);

 private:
  std::unordered_map<const ExprNode*, size_t> counts_;
  std::vector<Expr> keep_;  // so that no address is reused
};

struct RewriteRule {
  std::string_view name;  // what it does, for messages
  // The operators it looks at; kProjection stands for projections of tuples.
  std::vector<std::string_view> roots;
  // The replacement, or null when the rule does not apply. An error is a bug of the rule.
  Result<Expr> (*apply)(const Expr& expr, const Uses& uses);
};
inline constexpr std::string_view kProjection = "a projection";

// Returns the function with the rules applied; the same pointer if none applied.
Result<Function> apply_rules(const Function& function, std::span<const RewriteRule> rules);

// Returns the call that a rule whose roots are operators looks at.
inline const CallNode& call_of(const Expr& expr) { return *as<CallNode>(expr); }
inline int64_t rank_of(const Expr& expr) {
  return static_cast<int64_t>(expr->tensor_type().shape.size());
}

// Makes a call with other arguments or attributes and the origin of `like`.
Result<Expr> remake(const CallNode& like, std::vector<Expr> args);
Result<Expr> remake(const CallNode& like, std::vector<Expr> args, Attrs attrs);

}  // namespace collage
