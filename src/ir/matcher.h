// Matching a DFPattern against an expression, with backtracking: every choice of an alternative and
// every order of a commutative operator's arguments is tried.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/pattern.h"

namespace collage {

struct Match {
  Expr root;
  // The calls, tuples and projections that the pattern spells out, inputs before users. What a
  // wildcard, is_var or is_constant matched is an input, not a part.
  std::vector<Expr> inside;
  std::unordered_map<const PatternNode*, Expr> bindings;

  // What that node of the pattern matched; null when it stands in an alternative not taken.
  Expr operator[](const DFPattern& pattern) const {
    auto it = bindings.find(pattern.get());
    return it == bindings.end() ? nullptr : it->second;
  }
  // The first call inside of that operator, or null.
  const CallNode* call(std::string_view op_name) const;
  // The constants that is_constant() matched: those the pattern insists on.
  std::vector<Expr> constants() const;
};

// How many consumers an expression has; only needed for DFPattern::used_once.
using UseCount = std::function<size_t(const ExprNode*)>;

// The first way the pattern matches `root`.
std::optional<Match> match(const DFPattern& pattern, const Expr& root, const UseCount& uses = {});
// Every way, until `visit` returns false. Ways that differ only in the order of commutative
// arguments are all visited.
void for_each_match(const DFPattern& pattern, const Expr& root, const UseCount& uses,
                    const std::function<bool(const Match&)>& visit);

}  // namespace collage
