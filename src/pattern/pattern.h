// DFPattern: what a piece of a dataflow graph looks like. Patterns are small immutable values built
// from combinators; the matcher (pattern/matcher.h) finds them in expressions.
//
//   DFPattern x = wildcard();
//   DFPattern conv = is_op("nn.conv2d")(x, is_constant());
//   DFPattern bias = is_op("nn.bias_add")(conv, is_constant());
//   DFPattern root = bias.optional([](DFPattern p) { return is_op("nn.relu")(p); });
//
// A pattern node that occurs twice must match one and the same expression both times:
// is_op("multiply")(x, is_op("sigmoid")(x)) is x times its own sigmoid. Call wildcard() again for
// an unrelated input. Commutative operators match with their arguments in either order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

struct PatternNode;

class DFPattern {
 public:
  explicit DFPattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  const PatternNode* get() const { return node_.get(); }
  const PatternNode* operator->() const { return node_.get(); }

  // This pattern, where some further fact holds too.
  DFPattern has_attr(std::string name, AttrValue value) const;
  DFPattern has_dtype(DType dtype) const;
  DFPattern has_shape(Shape shape) const;
  DFPattern has_rank(int64_t rank) const;
  DFPattern has_type(Type type) const;
  DFPattern used_once() const;  // by one consumer; needs a matcher that knows the uses, else true
  // `what` names the condition in the pattern's text.
  DFPattern where(std::string what, std::function<bool(const Expr&)> predicate) const;

  // `wrap` around this pattern, or this pattern alone; the wrapped form is tried first.
  DFPattern optional(const std::function<DFPattern(DFPattern)>& wrap) const;

  std::string to_string() const;  // is_op("add")(*, const)

 private:
  std::shared_ptr<const PatternNode> node_;
};

enum class PatternKind {
  kWildcard,      // anything
  kVar,           // a variable (of that name, if given)
  kConstant,      // a constant
  kCall,          // a call of one of the operators, arguments matching
  kTuple,         // a tuple
  kTupleGetItem,  // a projection (of that index, if given)
  kAlternative,   // the first of the arguments that matches
  kCondition,     // its one argument, and the predicate
  kUsedOnce,      // its one argument, and that has one consumer
};

// The form behind DFPattern; for the matcher and the text form.
struct PatternNode {
  PatternKind kind = PatternKind::kWildcard;
  std::vector<std::string> names;  // kCall: operator names, none: any operator; kVar: its name
  FusionKind max_kind = FusionKind::kOpaque;  // kCall without names: kinds up to this one
  bool any_args = false;                      // kCall, kTuple: arguments are not looked at
  int64_t index = -1;                         // kTupleGetItem: -1 is any
  std::vector<DFPattern> args;
  std::string what;  // kCondition: for people
  std::function<bool(const Expr&)> predicate;
};

// What is_op gives: call it with patterns for the arguments. Used as a DFPattern itself, the
// arguments do not matter (they are inputs).
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
// A constant with one element of that value (relative tolerance 1e-5).
DFPattern is_scalar(double value);
OpPattern is_op(std::string name);
OpPattern is_op(std::initializer_list<std::string> names);  // any of them
OpPattern is_op_among(std::vector<std::string> names);
OpPattern is_op_up_to(FusionKind kind);  // any operator of at most that fusion kind
DFPattern is_tuple(std::vector<DFPattern> fields);
DFPattern is_tuple();  // of any length
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
DFPattern operator|(const DFPattern& a, const DFPattern& b);

// Whether exchanging the two arguments of the operator leaves the result as it is.
bool is_commutative(std::string_view op_name);

}  // namespace collage
