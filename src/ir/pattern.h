// DFPattern: a pattern of a piece of a dataflow graph. Patterns are small immutable values built
// from combinators; the matcher (ir/matcher.h) finds them in expressions.
//
//   DFPattern x = wildcard();
//   DFPattern conv = is_op("nn.conv2d")(x, is_constant());
//   DFPattern bias = is_op("nn.bias_add")(conv, is_constant());
//   DFPattern root = bias.optional([](DFPattern p) { return is_op("nn.relu")(p); });
//
// A pattern node that occurs twice must match one and the same expression both times:
// is_op("multiply")(x, is_op("sigmoid")(x)) is x times its own sigmoid. Call wildcard() again for
// an unrelated input. Commutative operators match with their arguments in either order.
//
// Patterns have a text form too (ir/pattern_text.h): is_op('nn.conv2d')(*, is_constant()).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

struct PatternNode;
struct Predicate;  // ir/predicate.h
// What each node of a pattern matched.
using Bindings = std::unordered_map<const PatternNode*, Expr>;

class DFPattern {
 public:
  explicit DFPattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  const PatternNode* get() const { return node_.get(); }
  const PatternNode* operator->() const { return node_.get(); }

  // Returns this pattern with a further condition.
  DFPattern used_once() const;  // by one consumer; needs a matcher that knows the uses, else true
  // `what` names the condition in the pattern's text, which cannot be parsed back then.
  DFPattern where(std::string what, std::function<bool(const Expr&)> predicate) const;
  // `names`: what the predicate calls them, patterns that match before it is asked.
  DFPattern where(Predicate predicate, std::map<std::string, DFPattern> names) const;
  DFPattern named(std::string name) const;  // $name in its text

  // Returns `wrap` around this pattern, or this pattern alone; the wrapped form is tried first.
  DFPattern optional(const std::function<DFPattern(DFPattern)>& wrap) const;

  // is_op('add')(*, is_constant()). Of what occurs twice only names (named) tell.
  std::string to_string() const;

 private:
  std::shared_ptr<const PatternNode> node_;
};

enum class PatternKind {
  kWildcard,      // anything
  kVar,           // a variable (of that name, if given)
  kConstant,      // a constant
  kCall,          // a call of one of the operators (or of the callee), arguments matching
  kTuple,         // a tuple
  kTupleGetItem,  // a projection (of that index, if given)
  kFunction,      // a function literal: its parameters, then its body
  kDominator,     // parent, path, child: see dominator()
  kAlternative,   // the first of the arguments that matches
  kCondition,     // its one argument, and the predicate
  kUsedOnce,      // its one argument, and that has one consumer
  kNamed,         // its one argument
};

// The form behind DFPattern; for the matcher and the text form.
struct PatternNode {
  PatternKind kind = PatternKind::kWildcard;
  std::vector<std::string> names;             // kCall: operators, none: any; kVar, kNamed: the name
  FusionKind max_kind = FusionKind::kOpaque;  // kCall without names: kinds up to this one
  bool any_args = false;                      // kCall, kTuple: arguments are not looked at
  int64_t index = -1;                         // kTupleGetItem: -1 is any
  bool calls_function = false;                // kCall: args[0] matches what is called
  std::vector<DFPattern> args;
  std::string what;  // kCondition: its text, after the argument's
  std::function<bool(const Expr&)> predicate;
  std::function<bool(const Expr&, const Bindings&)> relation;  // of a kCondition, instead
};

// The result of is_op: call it with patterns for the arguments. As a DFPattern itself it matches
// any arguments (they are inputs).
class OpPattern {
 public:
  explicit OpPattern(PatternNode node) : node_(std::move(node)) {}
  template <typename... Args>
  DFPattern operator()(Args... args) const {
    return with_args({DFPattern(args)...});
  }
  DFPattern with_args(std::vector<DFPattern> args) const;
  operator DFPattern() const;  // NOLINT: implicit on purpose

 private:
  PatternNode node_;
};

DFPattern wildcard();
DFPattern is_var(std::string name = "");
DFPattern is_constant();
// Matches a constant with one element of that value (relative tolerance 1e-5).
DFPattern is_scalar(double value);
OpPattern is_op(std::string name);
OpPattern is_op(std::initializer_list<std::string> names);  // any of them
OpPattern is_op_among(std::vector<std::string> names);
OpPattern is_op_up_to(FusionKind kind);  // any operator of at most that fusion kind
DFPattern is_tuple(std::vector<DFPattern> fields);
DFPattern is_tuple();  // of any length
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
// Matches a function literal by its parameters (in order) and its body.
DFPattern is_function(std::vector<DFPattern> params, DFPattern body);
DFPattern is_function();  // any
// Matches a call of a function that `function` matches. is_op and similar never match such calls.
DFPattern is_call_of(DFPattern function, std::vector<DFPattern> args);
// Matches `child`, if all its inputs come from one expression that `parent` matches, over one or
// more chains of calls that `path` matches; constants may come from anywhere. Everything from the
// parent to the child is a part of the match: a diamond of any size between them, for example.
DFPattern dominator(DFPattern parent, DFPattern path, DFPattern child);
DFPattern operator|(const DFPattern& a, const DFPattern& b);

// Returns an attribute's value as pattern text: as Relay text, but strings in quotes without
// escapes and reals without a suffix.
std::string attr_text(const AttrValue& value);
std::optional<double> attr_number(const AttrValue& value);  // of a number or a truth
// Returns whether an attribute has a value. Numbers compare by value, a list of one number equals
// that number, and a dtype its name.
bool attr_matches(const AttrValue& found, const AttrValue& wanted);

// Returns whether the operator's result is the same with its two arguments exchanged.
bool is_commutative(std::string_view op_name);

}  // namespace collage
