#include "ir/pattern.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "ir/predicate.h"

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

std::optional<std::vector<double>> as_numbers(const AttrValue& value) {
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return *reals;
  if (const auto* ints = std::get_if<Ints>(&value))
    return std::vector<double>(ints->begin(), ints->end());
  if (std::optional<double> number = attr_number(value)) return std::vector<double>{*number};
  return std::nullopt;
}

// Writes what has a name in full where it occurs first; hence in the text's order.
class PatternPrinter {
 public:
  std::string text(const DFPattern& pattern) {
    const PatternNode* node = pattern.get();
    switch (node->kind) {
      case PatternKind::kWildcard:
        return "*";
      case PatternKind::kVar:
        return "is_var(" + quoted_list(node->names) + ")";
      case PatternKind::kConstant:
        return "is_constant()";
      case PatternKind::kCall: {
        if (node->calls_function) {
          const std::string callee = text(node->args[0]);
          return callee + "(" + list(std::span(node->args).subspan(1)) + ")";
        }
        std::string head =
            node->names.empty()
                ? "is_op_up_to('" + std::string(fusion_kind_name(node->max_kind)) + "')"
                : "is_op(" + quoted_list(node->names) + ")";
        return node->any_args ? head : head + "(" + list(node->args) + ")";
      }
      case PatternKind::kTuple:
        return node->any_args ? "is_tuple()" : "is_tuple(" + list(node->args) + ")";
      case PatternKind::kTupleGetItem:
        return "is_tuple_get_item(" + text(node->args[0]) +
               (node->index < 0 ? ")" : ", " + std::to_string(node->index) + ")");
      case PatternKind::kFunction: {
        if (node->any_args) return "is_function()";
        std::span<const DFPattern> params(node->args.data(), node->args.size() - 1);
        const std::string in = list(params);
        return "is_function([" + in + "], " + text(node->args.back()) + ")";
      }
      case PatternKind::kDominator:
        return "dominator(" + list(node->args) + ")";
      case PatternKind::kAlternative: {
        const std::string first = text(node->args[0]);
        return "(" + first + " | " + text(node->args[1]) + ")";
      }
      case PatternKind::kCondition:
        return text(node->args[0]) + node->what;
      case PatternKind::kUsedOnce:
        return text(node->args[0]) + ".used_once()";
      case PatternKind::kNamed: {
        const std::string name = "$" + node->names[0];
        const bool again = !written_.insert(node).second;
        if (again || node->args[0]->kind == PatternKind::kWildcard) return name;
        return "(" + name + ": " + text(node->args[0]) + ")";
      }
    }
    return "?";
  }

 private:
  std::string list(std::span<const DFPattern> args) {
    std::string result;
    for (const DFPattern& arg : args) result += (result.empty() ? "" : ", ") + text(arg);
    return result;
  }

  std::set<const PatternNode*> written_;
};

}  // namespace

std::optional<double> attr_number(const AttrValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1.0 : 0.0;
  return std::nullopt;
}

std::string attr_text(const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    const std::string quote = text->find('\'') == std::string::npos ? "'" : "\"";
    return quote + *text + quote;
  }
  if (const auto* dtype = std::get_if<DType>(&value))
    return "'" + std::string(dtype_name(*dtype)) + "'";
  std::string text = attr_to_string(value);
  if (std::holds_alternative<double>(value) || std::holds_alternative<std::vector<double>>(value))
    std::erase(text, 'f');
  return text;
}

DFPattern DFPattern::where(std::string what, std::function<bool(const Expr&)> predicate) const {
  PatternNode node;
  node.kind = PatternKind::kCondition;
  node.args = {*this};
  node.what = "." + what;
  node.predicate = std::move(predicate);
  return make(std::move(node));
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

DFPattern DFPattern::where(Predicate predicate, std::map<std::string, DFPattern> names) const {
  PatternNode node;
  node.kind = PatternKind::kCondition;
  node.args = {*this};
  node.what = ".where(" + predicate.text + ")";
  node.relation = [holds = std::move(predicate.holds), names = std::move(names)](
                      const Expr& expr, const Bindings& bindings) {
    return holds(expr, [&](const std::string& name) -> Expr {
      const auto found = bindings.find(names.at(name).get());
      return found == bindings.end() ? nullptr : found->second;
    });
  };
  return make(std::move(node));
}

DFPattern DFPattern::named(std::string name) const {
  PatternNode node;
  node.kind = PatternKind::kNamed;
  node.names = {std::move(name)};
  node.args = {*this};
  return make(std::move(node));
}

std::string DFPattern::to_string() const { return PatternPrinter().text(*this); }

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
