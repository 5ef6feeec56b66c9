#include "ir/pattern.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

namespace collage {

namespace {

DFPattern make(PatternNode node) {
  return DFPattern(std::make_shared<const PatternNode>(std::move(node)));
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::string arg_list(std::span<const DFPattern> args) {
  std::string text;
  for (const DFPattern& arg : args) text += (text.empty() ? "" : ", ") + arg.to_string();
  return text;
}

DFPattern condition(const DFPattern& pattern, std::string what,
                    std::function<bool(const Expr&)> predicate) {
  PatternNode node;
  node.kind = PatternKind::kCondition;
  node.args = {pattern};
  node.what = std::move(what);
  node.predicate = std::move(predicate);
  return make(std::move(node));
}

// An attribute's value as pattern text: as Relay text, but strings in single quotes and reals
// without a suffix.
std::string attr_text(const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return "'" + *text + "'";
  if (const auto* dtype = std::get_if<DType>(&value))
    return "'" + std::string(dtype_name(*dtype)) + "'";
  std::string text = attr_to_string(value);
  if (std::holds_alternative<double>(value) || std::holds_alternative<std::vector<double>>(value))
    std::erase(text, 'f');
  return text;
}

std::optional<double> as_number(const AttrValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<std::vector<double>> as_numbers(const AttrValue& value) {
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return *reals;
  if (const auto* ints = std::get_if<Ints>(&value))
    return std::vector<double>(ints->begin(), ints->end());
  if (std::optional<double> number = as_number(value)) return std::vector<double>{*number};
  return std::nullopt;
}

}  // namespace

DFPattern DFPattern::where(std::string what, std::function<bool(const Expr&)> predicate) const {
  return condition(*this, "." + what, std::move(predicate));
}

DFPattern DFPattern::has_attr(std::string name, AttrValue value) const {
  std::string what = "{" + name + ": " + attr_text(value) + "}";
  return condition(*this, std::move(what), [name, value](const Expr& expr) {
    const AttrValue* found = nullptr;
    if (const auto* call = as<CallNode>(expr)) found = call->attrs.find(name);
    if (const auto* function = as<FunctionNode>(expr)) found = function->attrs.find(name);
    return found != nullptr && attr_matches(*found, value);
  });
}

DFPattern DFPattern::has_dtype(DType dtype) const {
  std::string what = ".has_dtype('" + std::string(dtype_name(dtype)) + "')";
  return condition(*this, std::move(what), [dtype](const Expr& expr) {
    return expr->type().is_tensor() && expr->tensor_type().dtype == dtype;
  });
}

DFPattern DFPattern::has_shape(Shape shape) const {
  std::string dims;
  for (int64_t dim : shape)
    dims += (dims.empty() ? "" : ", ") + (dim < 0 ? std::string("*") : std::to_string(dim));
  if (shape.size() == 1) dims += ",";
  return condition(*this, ".has_shape((" + dims + "))", [shape](const Expr& expr) {
    if (!expr->type().is_tensor()) return false;
    const Shape& found = expr->tensor_type().shape;
    return std::equal(found.begin(), found.end(), shape.begin(), shape.end(),
                      [](int64_t have, int64_t want) { return want < 0 || have == want; });
  });
}

DFPattern DFPattern::has_rank(int64_t rank) const {
  return condition(*this, ".has_rank(" + std::to_string(rank) + ")", [rank](const Expr& expr) {
    return expr->type().is_tensor() &&
           static_cast<int64_t>(expr->tensor_type().shape.size()) == rank;
  });
}

DFPattern DFPattern::has_type(Type type) const {
  std::string what = ".has_type(" + type.to_string() + ")";
  return condition(*this, std::move(what),
                   [type](const Expr& expr) { return expr->type() == type; });
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
      return "is_constant()";
    case PatternKind::kCall: {
      if (node_->calls_function)
        return node_->args[0].to_string() + "(" + arg_list(std::span(node_->args).subspan(1)) + ")";
      std::string head =
          node_->names.empty()
              ? "is_op_up_to('" + std::string(fusion_kind_name(node_->max_kind)) + "')"
              : "is_op(" + quoted_list(node_->names) + ")";
      return node_->any_args ? head : head + "(" + arg_list(node_->args) + ")";
    }
    case PatternKind::kTuple:
      return node_->any_args ? "is_tuple()" : "is_tuple(" + arg_list(node_->args) + ")";
    case PatternKind::kTupleGetItem:
      return "is_tuple_get_item(" + node_->args[0].to_string() +
             (node_->index < 0 ? ")" : ", " + std::to_string(node_->index) + ")");
    case PatternKind::kFunction: {
      if (node_->any_args) return "is_function()";
      std::span<const DFPattern> params(node_->args.data(), node_->args.size() - 1);
      return "is_function([" + arg_list(params) + "], " + node_->args.back().to_string() + ")";
    }
    case PatternKind::kDominator:
      return "dominator(" + arg_list(node_->args) + ")";
    case PatternKind::kAlternative:
      return "(" + node_->args[0].to_string() + " | " + node_->args[1].to_string() + ")";
    case PatternKind::kCondition:
      return node_->args[0].to_string() + node_->what;
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
  PatternNode node;
  node.kind = PatternKind::kCondition;
  node.args = {is_constant()};
  node.what = ".has_value(" + attr_text(value) + ")";
  node.predicate = [value](const Expr& expr) {
    const auto* constant = as<ConstantNode>(expr);
    if (constant == nullptr || constant->value.size() != 1) return false;
    double found = constant->value.element_as_double(0);
    return std::abs(found - value) <= 1e-5 * std::abs(value);
  };
  return make(std::move(node));
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

DFPattern is_function(std::vector<DFPattern> params, DFPattern body) {
  PatternNode node;
  node.kind = PatternKind::kFunction;
  node.args = std::move(params);
  node.args.push_back(std::move(body));
  return make(std::move(node));
}

DFPattern is_function() {
  PatternNode node;
  node.kind = PatternKind::kFunction;
  node.any_args = true;
  return make(std::move(node));
}

DFPattern is_call_of(DFPattern function, std::vector<DFPattern> args) {
  PatternNode node;
  node.kind = PatternKind::kCall;
  node.calls_function = true;
  node.args = std::move(args);
  node.args.insert(node.args.begin(), std::move(function));
  return make(std::move(node));
}

DFPattern dominator(DFPattern parent, DFPattern path, DFPattern child) {
  PatternNode node;
  node.kind = PatternKind::kDominator;
  node.args = {std::move(parent), std::move(path), std::move(child)};
  return make(std::move(node));
}

bool attr_matches(const AttrValue& found, const AttrValue& wanted) {
  if (found == wanted) return true;
  if (const auto* dtype = std::get_if<DType>(&found))
    if (const auto* name = std::get_if<std::string>(&wanted)) return dtype_name(*dtype) == *name;
  std::optional<std::vector<double>> a = as_numbers(found), b = as_numbers(wanted);
  return a && b && *a == *b;
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
