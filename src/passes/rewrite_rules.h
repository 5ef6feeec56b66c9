// Local rewrites: a pass is a table of named rules, each of which looks at one node and gives a
// cheaper or more regular one of the same type. Rules are tried in table order, bottom-up, again
// and again until none applies.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

// How often each node of a function is used. A node made by a rule has the uses of what it
// replaces.
class Uses {
 public:
  explicit Uses(const Function& function);
  size_t of(const Expr& expr) const;
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

// The function with the rules applied; the same pointer when none applied.
Result<Function> apply_rules(const Function& function, std::span<const RewriteRule> rules);

// What a rule whose roots are operators looks at.
inline const CallNode& call_of(const Expr& expr) { return *as<CallNode>(expr); }
inline int64_t rank_of(const Expr& expr) {
  return static_cast<int64_t>(expr->tensor_type().shape.size());
}

// A call with other arguments or attributes, from where `like` came.
Result<Expr> remake(const CallNode& like, std::vector<Expr> args);
Result<Expr> remake(const CallNode& like, std::vector<Expr> args, Attrs attrs);

}  // namespace collage
