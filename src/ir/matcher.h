// Matches a DFPattern against an expression, with backtracking: tries every choice of an
// alternative and every order of a commutative operator's arguments.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/pattern.h"

namespace collage {

struct Match {
  Expr root;
  // The calls, tuples and projections of the pattern, inputs before users. Matches of a wildcard,
  // is_var or is_constant are inputs, not parts.
  std::vector<Expr> inside;
  Bindings bindings;

  // Returns the match of that node of the pattern; null in an alternative that was not taken.
  Expr operator[](const DFPattern& pattern) const {
    auto it = bindings.find(pattern.get());
    return it == bindings.end() ? nullptr : it->second;
  }
  // Returns the first call inside of that operator, or null.
  const CallNode* call(std::string_view op_name) const;
  // Returns the constants that is_constant() matched, which the kernel requires.
  std::vector<Expr> constants() const;
};

// Returns how many consumers an expression has; only needed for DFPattern::used_once.
using UseCount = std::function<size_t(const ExprNode*)>;

// Returns the first way the pattern matches `root`.
std::optional<Match> match(const DFPattern& pattern, const Expr& root, const UseCount& uses = {});
// Visits every way, until `visit` returns false. Ways that differ only in the order of commutative
// arguments are all visited.
void for_each_match(const DFPattern& pattern, const Expr& root, const UseCount& uses,
                    const std::function<bool(const Match&)>& visit);

}  // namespace collage
