#include "ir/predicate.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "ir/pattern.h"
#include "ir/pattern_values.h"

namespace collage {

namespace {

using Kind = Token::Kind;
constexpr int kMaxParts = 400;

using PropertyValue = std::optional<AttrValue>;  // nothing: unknown
struct PredicateScope {
  const Expr& at;
  const NamedExprs& named;
};
struct PredicateTerm {
  std::string text;
  std::function<PropertyValue(const PredicateScope&)> value;
};

constexpr std::string_view kProperties[] = {"op",   "shape", "rank",       "dtype",
                                            "size", "value", "is_constant"};

// Operators by how strongly they bind.
const std::vector<std::string_view> kLevels[] = {
    {"or"}, {"and"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"}};
constexpr size_t kComparison = 2, kSum = 3;

std::optional<bool> truth(const PropertyValue& value) {
  const std::optional<double> found = value ? attr_number(*value) : std::nullopt;
  return found ? std::optional(*found != 0) : std::nullopt;
}

PropertyValue logic(bool decides, const PropertyValue& a, const PropertyValue& b) {
  const std::optional<bool> x = truth(a), y = truth(b);
  if (x == decides || y == decides) return AttrValue(decides);
  return x && y ? PropertyValue(AttrValue(!decides)) : std::nullopt;
}

PropertyValue computed(std::string_view op, const PropertyValue& a, const PropertyValue& b) {
  if (op == "and" || op == "or") return logic(op == "or", a, b);
  if (!a || !b) return std::nullopt;
  if (op == "==") return AttrValue(attr_matches(*a, *b));
  if (op == "!=") return AttrValue(!attr_matches(*a, *b));
  const std::optional<double> x = attr_number(*a), y = attr_number(*b);
  if (!x || !y) return std::nullopt;
  if (op[0] == '<') return AttrValue(op == "<" ? *x < *y : *x <= *y);
  if (op[0] == '>') return AttrValue(op == ">" ? *x > *y : *x >= *y);
  if (op == "+") return AttrValue(*x + *y);
  if (op == "-") return AttrValue(*x - *y);
  if (op == "*") return AttrValue(*x * *y);
  if (*y == 0) return std::nullopt;
  return AttrValue(op == "/" ? *x / *y : std::fmod(*x, *y));
}

struct Registered {
  std::mutex mutex;
  std::map<std::string, Property> properties;
};

Registered& registered() {
  static Registered all;
  return all;
}

// Returns the one that was registered by that name, or an empty one.
Property registered_property(const std::string& name) {
  const std::lock_guard lock(registered().mutex);
  const auto found = registered().properties.find(name);
  return found == registered().properties.end() ? Property() : found->second;
}

bool is_attribute(const std::string& name) {
  for (const OpDef* op : all_ops())
    for (const AttrSpec& spec : op->attrs)
      if (spec.name == name) return true;
  return false;
}

PropertyValue property(const Expr& expr, const std::string& name) {
  if (expr == nullptr) return std::nullopt;
  const auto* call = as<CallNode>(expr);
  const auto* constant = as<ConstantNode>(expr);
  if (name == "is_constant") return AttrValue(constant != nullptr);
  if (name == "value" && constant != nullptr && constant->value.size() == 1)
    return AttrValue(constant->value.element_as_double(0));
  if (name == "op" && call != nullptr && call->op != nullptr) return AttrValue(call->op->name);
  if (expr->type().is_tensor()) {
    const TensorType& type = expr->tensor_type();
    if (name == "shape") return AttrValue(Ints(type.shape.begin(), type.shape.end()));
    if (name == "rank") return AttrValue(static_cast<int64_t>(type.shape.size()));
    if (name == "dtype") return AttrValue(std::string(dtype_name(type.dtype)));
    if (name == "size") return AttrValue(num_elements(type.shape));
  }
  const auto* function = as<FunctionNode>(expr);
  const AttrValue* found = call != nullptr       ? call->attrs.find(name)
                           : function != nullptr ? function->attrs.find(name)
                                                 : nullptr;
  return found != nullptr ? PropertyValue(*found) : std::nullopt;
}

PropertyValue element_of(const PropertyValue& value, int64_t index) {
  const auto of = [&](const auto* list) -> PropertyValue {
    const auto size = static_cast<int64_t>(list == nullptr ? 0 : list->size());
    const int64_t i = index < 0 ? index + size : index;
    return i < 0 || i >= size ? PropertyValue()
                              : PropertyValue(AttrValue((*list)[static_cast<size_t>(i)]));
  };
  if (!value) return std::nullopt;
  const auto* lists = std::get_if<IntLists>(&*value);
  return lists != nullptr ? of(lists) : of(std::get_if<Ints>(&*value));
}

class PredicateParser {
 public:
  PredicateParser(PatternReader& reader, const OpsOfName& ops_of)
      : reader_(reader), ops_of_(ops_of) {}

  Result<PredicateTerm> binary(size_t level) {
    if (level == std::size(kLevels)) return indexed();
    if (level == kComparison && reader_.accept("not")) {
      TRY(count());
      PredicateTerm inner = TRY(binary(level));
      return PredicateTerm{
          "not " + inner.text,
          [inner = std::move(inner.value)](const PredicateScope& scope) -> PropertyValue {
            const std::optional<bool> found = truth(inner(scope));
            return found ? PropertyValue(AttrValue(!*found)) : std::nullopt;
          }};
    }
    PredicateTerm left = TRY(binary(level + 1));
    while (true) {
      std::string op;
      for (std::string_view known : kLevels[level])
        if (reader_.is(known)) op = known;
      // "a -1" is a name and a number for the lexer.
      const bool signed_number =
          level == kSum && reader_.is(Kind::kNumber) && reader_.token().text[0] == '-';
      if (op.empty() && !signed_number) return left;
      TRY(count());
      if (!signed_number) reader_.step();
      PredicateTerm right = TRY(binary(level + 1));
      if (signed_number) op = "+";
      left.text += " " + op + " " + right.text;
      left.value = [op, a = std::move(left.value), b = std::move(right.value)](
                       const PredicateScope& scope) { return computed(op, a(scope), b(scope)); };
      if (level == kComparison) return left;
    }
  }

 private:
  Status count() {
    if (++parts_ <= kMaxParts) return {};
    return at(reader_.token(), fmt::format("a predicate of more than {} operators", kMaxParts));
  }

  Result<PredicateTerm> indexed() {
    PredicateTerm term = TRY(primary());
    while (reader_.accept("[")) {
      TRY(count());
      const int64_t index = TRY(parse_integer(reader_, "an index"));
      TRY(reader_.expect("]"));
      term.text += fmt::format("[{}]", index);
      term.value = [list = std::move(term.value), index](const PredicateScope& scope) {
        return element_of(list(scope), index);
      };
    }
    return term;
  }

  Result<PredicateTerm> primary() {
    const Token start = reader_.token();
    if (reader_.accept("(")) {
      TRY(count());
      PredicateTerm inner = TRY(binary(0));
      TRY(reader_.expect(")"));
      inner.text = "(" + inner.text + ")";
      return inner;
    }
    if (start.kind == Kind::kLocal) {
      reader_.step();
      TRY(reader_.expect(".", " and a property"));
      return property_of(start);
    }
    if (start.kind == Kind::kName && start.text != "True" && start.text != "False" &&
        start.text != "None")
      return property_of(Token{});
    const AttrValue value = TRY(parse_value(reader_));
    return PredicateTerm{attr_text(value),
                         [value](const PredicateScope&) { return PropertyValue(value); }};
  }

  // shape; args[0].shape
  Result<PredicateTerm> property_of(const Token& name) {
    std::vector<const OpDef*> ops = TRY(ops_of_(name));
    std::string text = name.text.empty() ? "" : "$" + name.text + ".";
    std::vector<size_t> steps;
    while (reader_.accept("args")) {
      TRY(reader_.expect("[", " after args"));
      const int64_t step = TRY(parse_integer(reader_, "an argument's number"));
      TRY(reader_.expect("]"));
      TRY(reader_.expect(".", " and a property"));
      text += fmt::format("args[{}].", step);
      steps.push_back(static_cast<size_t>(step));
      ops.clear();
    }
    const Token last = reader_.token();
    if (last.kind != Kind::kName) return reader_.expected("a property");
    const Property own = registered_property(last.text);
    if (!own) TRY(check(last, ops.empty() ? all_ops() : ops, !ops.empty()));
    reader_.step();
    return PredicateTerm{text + last.text,
                         [own, name = name.text, steps,
                          last = last.text](const PredicateScope& scope) -> PropertyValue {
                           Expr expr = name.empty() ? scope.at : scope.named(name);
                           for (size_t step : steps) {
                             const auto* call = as<CallNode>(expr);
                             if (call == nullptr || step >= call->args.size()) return std::nullopt;
                             expr = call->args[step];
                           }
                           if (own) return expr == nullptr ? std::nullopt : own(expr);
                           return property(expr, last);
                         }};
  }

  static Status check(const Token& name, const std::vector<const OpDef*>& ops, bool of_these) {
    if (!of_these && std::isupper(static_cast<unsigned char>(name.text[0])) != 0) return {};
    std::string known = "args[…]";
    for (std::string_view one : kProperties) {
      if (one == name.text) return {};
      known += ", " + std::string(one);
    }
    for (const OpDef* op : ops) {
      for (const AttrSpec& spec : op->attrs) {
        if (spec.name == name.text) return {};
        if (of_these) known += ", " + spec.name;
      }
    }
    return at(name, fmt::format("unknown property '{}': there are {}{}", name.text, known,
                                of_these ? "" : ", and attributes of operators"));
  }

  PatternReader& reader_;
  const OpsOfName& ops_of_;
  int parts_ = 0;
};

}  // namespace

Status register_property(const std::string& name, Property property) {
  PatternReader reader(name);
  const bool is_name = reader.is(Kind::kName) && reader.token().text == name && name != "True" &&
                       name != "False" && name != "None" && name != "args" && name != "and" &&
                       name != "or" && name != "not";
  if (!is_name) return usage_error("'{}' is no name of a property", name);
  if (std::find(std::begin(kProperties), std::end(kProperties), name) != std::end(kProperties) ||
      is_attribute(name))
    return usage_error("there is a property '{}' already", name);
  const std::lock_guard lock(registered().mutex);
  if (!registered().properties.emplace(name, std::move(property)).second)
    return usage_error("there is a property '{}' already", name);
  return {};
}

Result<Predicate> parse_predicate(PatternReader& reader, const OpsOfName& ops_of) {
  PredicateTerm term = TRY(PredicateParser(reader, ops_of).binary(0));
  return Predicate{std::move(term.text),
                   [value = std::move(term.value)](const Expr& at, const NamedExprs& named) {
                     return truth(value({at, named})) == true;
                   }};
}

}  // namespace collage
