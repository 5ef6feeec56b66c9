// Traverses terms.
#pragma once

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tensor_program/term.h"

namespace collage::tensor_program {

/// Calls `visit` for the term and every term inside it, each once.
template <typename Visit>
void for_each_inside(const Term& root, const Visit& visit) {
  std::unordered_set<const TermNode*> visited;
  std::vector<Term> left{root};
  while (!left.empty()) {
    const Term term = left.back();
    left.pop_back();
    if (!visited.insert(term.get()).second) continue;
    visit(term);
    left.insert(left.end(), term->args.begin(), term->args.end());
  }
}

/// Returns every load inside the term, those in indices included, equal ones once.
inline std::vector<Term> distinct_loads(const Term& root) {
  std::vector<Term> loads;
  for_each_inside(root, [&](const Term& term) {
    if (term->op != TermOp::kLoad) return;
    if (std::none_of(loads.begin(), loads.end(), [&](const Term& l) { return same(l, term); }))
      loads.push_back(term);
  });
  return loads;
}

inline bool is_variable(const Term& term, std::string_view name) {
  return term->op == TermOp::kVar && term->name == name;
}

/// Returns whether the variable occurs in the term.
inline bool depends_on(const Term& root, std::string_view name) {
  bool found = false;
  for_each_inside(root, [&](const Term& term) { found = found || is_variable(term, name); });
  return found;
}

}  // namespace collage::tensor_program
