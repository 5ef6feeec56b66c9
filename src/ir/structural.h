// Structural equality and hashing of expressions, functions and modules: parameters compare by
// position, constants by value, origins and names not at all. A node shared and the same node
// computed twice compare equal. Time is linear in the size of the graph (and of the constants that
// are not the same object).
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "ir/expr.h"
#include "ir/module.h"

namespace collage {

// An attribute of operators that is for people; like origins it is ignored by structural equality
// and canonical text.
inline constexpr std::string_view kNameAttribute = "name";

// Numbers expressions so that two have one number exactly when they compute structurally equal
// values. Variables bound by numbered functions compare by position, others by identity.
class ValueNumbering {
 public:
  ValueNumbering();
  ~ValueNumbering();
  ValueNumbering(const ValueNumbering&) = delete;
  ValueNumbering& operator=(const ValueNumbering&) = delete;
  size_t number(const Expr& expr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

bool structural_equal(const Expr& a, const Expr& b);
// Compares modules: the same names with structurally equal functions; abstract functions by kind
// and text, external modules by all that they hold.
bool structural_equal(const Module& a, const Module& b);

}  // namespace collage
