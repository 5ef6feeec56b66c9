#include "pattern/pattern.h"

#include <cmath>
#include <set>

namespace collage {

namespace {

DFPattern make(PatternNode node) {
  return DFPattern(std::make_shared<const PatternNode>(std::move(node)));
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

std::string arg_list(const std::vector<DFPattern>& args) {
  std::string text;
  for (const DFPattern& arg : args) text += (text.empty() ? "" : ", ") + arg.to_string();
  return text;
}

}  // namespace

DFPattern DFPattern::where(std::string what, std::function<bool(const Expr&)> predicate) const {
  PatternNode node;
  node.kind = PatternKind::kCondition;
  node.args = {*this};
  node.what = std::move(what);
  node.predicate = std::move(predicate);
  return make(std::move(node));
}

DFPattern DFPattern::has_attr(std::string name, AttrValue value) const {
  std::string what = "has_attr(" + name + "=" + attr_to_string(value) + ")";
  return where(std::move(what), [name, value](const Expr& expr) {
    const auto* call = as<CallNode>(expr);
    const AttrValue* found = call != nullptr ? call->attrs.find(name) : nullptr;
    return found != nullptr && *found == value;
  });
}

DFPattern DFPattern::has_dtype(DType dtype) const {
  return where("has_dtype(" + std::string(dtype_name(dtype)) + ")", [dtype](const Expr& expr) {
    return expr->type().is_tensor() && expr->tensor_type().dtype == dtype;
  });
}

DFPattern DFPattern::has_shape(Shape shape) const {
  return where("has_shape(" + shape_to_string(shape) + ")", [shape](const Expr& expr) {
    return expr->type().is_tensor() && expr->tensor_type().shape == shape;
  });
}

DFPattern DFPattern::has_rank(int64_t rank) const {
  return where("has_rank(" + std::to_string(rank) + ")", [rank](const Expr& expr) {
    return expr->type().is_tensor() &&
           static_cast<int64_t>(expr->tensor_type().shape.size()) == rank;
  });
}

DFPattern DFPattern::has_type(Type type) const {
  std::string what = "has_type(" + type.to_string() + ")";
  return where(std::move(what), [type](const Expr& expr) { return expr->type() == type; });
}

DFPattern DFPattern::used_once() const {
  PatternNode node;
  node.kind = PatternKind::kUsedOnce;
  node.args = {*this};
  return make(std::move(node));
}

DFPattern DFPattern::optional(const std::function<DFPattern(DFPattern)>& wrap) const {
  return wrap(*this) | *this;
}

std::string DFPattern::to_string() const {
  switch (node_->kind) {
    case PatternKind::kWildcard:
      return "*";
    case PatternKind::kVar:
      return "is_var(" + quoted_list(node_->names) + ")";
    case PatternKind::kConstant:
      return "const";
    case PatternKind::kCall: {
      std::string head = node_->names.empty()
                             ? "is_op_up_to(" + std::string(fusion_kind_name(node_->max_kind)) + ")"
                             : "is_op(" + quoted_list(node_->names) + ")";
      return node_->any_args ? head : head + "(" + arg_list(node_->args) + ")";
    }
    case PatternKind::kTuple:
      return node_->any_args ? "is_tuple()" : "is_tuple(" + arg_list(node_->args) + ")";
    case PatternKind::kTupleGetItem:
      return "is_tuple_get_item(" + node_->args[0].to_string() +
             (node_->index < 0 ? ")" : ", " + std::to_string(node_->index) + ")");
    case PatternKind::kAlternative:
      return "(" + node_->args[0].to_string() + " | " + node_->args[1].to_string() + ")";
    case PatternKind::kCondition:
      return node_->args[0].to_string() + "." + node_->what;
    case PatternKind::kUsedOnce:
      return node_->args[0].to_string() + ".used_once()";
  }
  return "?";
}

DFPattern OpPattern::with_args(std::vector<DFPattern> args) const {
  PatternNode node = node_;
  node.args = std::move(args);
  node.any_args = false;
  return make(std::move(node));
}

OpPattern::operator DFPattern() const {
  PatternNode node = node_;
  node.any_args = true;
  return make(std::move(node));
}

DFPattern wildcard() { return make({}); }

DFPattern is_var(std::string name) {
  PatternNode node;
  node.kind = PatternKind::kVar;
  if (!name.empty()) node.names = {std::move(name)};
  return make(std::move(node));
}

DFPattern is_constant() {
  PatternNode node;
  node.kind = PatternKind::kConstant;
  return make(std::move(node));
}

DFPattern is_scalar(double value) {
  return is_constant().where("is_scalar(" + std::to_string(value) + ")", [value](const Expr& expr) {
    const auto* constant = as<ConstantNode>(expr);
    if (constant == nullptr || constant->value.size() != 1) return false;
    double found = constant->value.element_as_double(0);
    return std::abs(found - value) <= 1e-5 * std::abs(value);
  });
}

OpPattern is_op_among(std::vector<std::string> names) {
  PatternNode node;
  node.kind = PatternKind::kCall;
  node.names = std::move(names);
  return OpPattern(std::move(node));
}

OpPattern is_op(std::initializer_list<std::string> names) { return is_op_among(names); }

OpPattern is_op(std::string name) { return is_op_among({std::move(name)}); }

OpPattern is_op_up_to(FusionKind kind) {
  PatternNode node;
  node.kind = PatternKind::kCall;
  node.max_kind = kind;
  return OpPattern(std::move(node));
}

DFPattern is_tuple(std::vector<DFPattern> fields) {
  PatternNode node;
  node.kind = PatternKind::kTuple;
  node.args = std::move(fields);
  return make(std::move(node));
}

DFPattern is_tuple() {
  PatternNode node;
  node.kind = PatternKind::kTuple;
  node.any_args = true;
  return make(std::move(node));
}

DFPattern is_tuple_get_item(DFPattern tuple, int64_t index) {
  PatternNode node;
  node.kind = PatternKind::kTupleGetItem;
  node.args = {std::move(tuple)};
  node.index = index;
  return make(std::move(node));
}

DFPattern operator|(const DFPattern& a, const DFPattern& b) {
  PatternNode node;
  node.kind = PatternKind::kAlternative;
  node.args = {a, b};
  return make(std::move(node));
}

bool is_commutative(std::string_view op_name) {
  static const std::set<std::string, std::less<>> kCommutative = {
      "add",         "multiply",   "maximum",     "minimum",     "equal",      "not_equal",
      "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"};
  return kCommutative.find(op_name) != kCommutative.end();
}

}  // namespace collage
