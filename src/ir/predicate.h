// Predicates of patterns and rules (docs/patterns.md): expressions over the shapes, types and
// attributes of what matched, and relations between them.
//
//   channels % 8 == 0 and $w.dtype == 'int8'
//
// A property without a name is that of the expression at which the predicate stands. What cannot be
// computed is unknown: an attribute that there is not, a name in an alternative that was not taken,
// a division by zero. `and`, `or` and `not` treat it as a truth that nobody knows; a predicate that
// is unknown in the end does not hold.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/op.h"
#include "ir/pattern_reader.h"

namespace collage {

// The value of an expression's property; nothing: unknown. Called from several threads.
using Property = std::function<std::optional<AttrValue>(const Expr&)>;

// Adds a property to those that predicates know, for the rest of the process. kUsage: it is no
// name, or there is a property or an operator's attribute of that name.
Status register_property(const std::string& name, Property property);

// Returns what a name stands for in a match; null: nothing.
using NamedExprs = std::function<Expr(const std::string& name)>;

struct Predicate {
  std::string text;  // parses back
  std::function<bool(const Expr& at, const NamedExprs& named)> holds;
};

// Returns the operators that a name (or, for a token without text, the expression at which the
// predicate stands) may be a call of; none: it may be anything. An error: there is no such name.
using OpsOfName = std::function<Result<std::vector<const OpDef*>>(const Token& name)>;

// Reads from the current token on. Attributes must exist.
Result<Predicate> parse_predicate(PatternReader& reader, const OpsOfName& ops_of);

}  // namespace collage
