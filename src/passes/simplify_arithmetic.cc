// Rules of `simplify` for elementwise operators.
#include <cmath>
#include <limits>

#include "passes/constants.h"
#include "passes/simplify.h"

namespace collage {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// x when the other argument is a constant full of `value` and does not enlarge the result.
Expr without_neutral(const Expr& expr, double value) {
  const CallNode& call = call_of(expr);
  if (!(call.args[0]->type() == expr->type())) return nullptr;
  std::optional<double> actual = uniform_value(call.args[1]);
  return actual && *actual == value ? call.args[0] : nullptr;
}

// x * 1, x / 1, x ** 1 to x
Result<Expr> drop_one(const Expr& expr, const Uses&) { return without_neutral(expr, 1); }
// x + 0, x - 0 to x
Result<Expr> drop_zero(const Expr& expr, const Uses&) { return without_neutral(expr, 0); }

// c + x to x + c
Result<Expr> constant_to_the_right(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  if (call.args[0]->kind() != ExprKind::kConstant || call.args[1]->kind() == ExprKind::kConstant)
    return Expr();
  return remake(call, {call.args[1], call.args[0]});
}

// x - c to x + -c
Result<Expr> subtract_to_add(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const auto* constant = as<ConstantNode>(call.args[1]);
  if (constant == nullptr || !is_real(constant->value.dtype()) ||
      call.args[0]->kind() == ExprKind::kConstant)
    return Expr();
  Tensor negated = map_constant(constant->value, [](double v) { return -v; });
  return make_call("add", {call.args[0], make_constant(negated, constant->origin())}, {},
                   expr->origin());
}

// (x + a) + b to x + (a + b), (x * a) * b to x * (a * b), for scalars a and b
Result<Expr> merge_scalars(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const CallNode* inner = as_op(call.args[0], call.op->name);
  if (inner == nullptr || !uses.once(call.args[0]) || !is_real(expr->tensor_type().dtype))
    return Expr();
  std::optional<double> a = scalar_value(inner->args[1]), b = scalar_value(call.args[1]);
  if (!a || !b || !(inner->args[0]->type() == expr->type())) return Expr();
  const Tensor& first = as<ConstantNode>(inner->args[1])->value;
  bool sum = call.op->name == "add";
  Tensor merged = map_constant(first, [&](double v) { return sum ? v + *b : v * *b; });
  return remake(call, {inner->args[0], make_constant(merged)});
}

// -(-x) to x
Result<Expr> double_negative(const Expr& expr, const Uses&) {
  const CallNode* inner = as_op(call_of(expr).args[0], "negative");
  return inner != nullptr ? inner->args[0] : nullptr;
}

// The interval that a clamping operator holds its argument to.
struct Clamp {
  Expr data;
  double low = -kInfinity, high = kInfinity;
};
std::optional<Clamp> clamp_of(const Expr& expr) {
  if (const CallNode* call = as_op(expr, "nn.relu")) return Clamp{call->args[0], 0, kInfinity};
  if (const CallNode* call = as_op(expr, "clip"))
    return Clamp{call->args[0], call->attrs.real("a_min"), call->attrs.real("a_max")};
  for (std::string_view name : {"maximum", "minimum"}) {
    const CallNode* call = as_op(expr, name);
    if (call == nullptr || !(call->args[0]->type() == expr->type())) continue;
    std::optional<double> bound = uniform_value(call->args[1]);
    if (!bound || std::isnan(*bound)) continue;
    return name == "maximum" ? Clamp{call->args[0], *bound, kInfinity}
                             : Clamp{call->args[0], -kInfinity, *bound};
  }
  return std::nullopt;
}

// clip, relu, maximum and minimum with constants to relu or one clip
Result<Expr> merge_clamps(const Expr& expr, const Uses& uses) {
  if (!is_float(expr->tensor_type().dtype)) return Expr();
  std::optional<Clamp> outer = clamp_of(expr);
  if (!outer) return Expr();
  std::string_view name = call_of(expr).op->name;
  if (outer->low == 0 && outer->high == kInfinity && name != "nn.relu")
    return make_call("nn.relu", {outer->data}, {}, expr->origin());
  std::optional<Clamp> inner = clamp_of(outer->data);
  if (!inner || !uses.once(outer->data)) return Expr();
  // max(low, …) first, then min(high, …): the outer bounds also hold the inner ones.
  double low = std::min(std::max(inner->low, outer->low), outer->high);
  double high = std::min(std::max(inner->high, outer->low), outer->high);
  if (low == 0 && high == kInfinity) return make_call("nn.relu", {inner->data}, {}, expr->origin());
  return make_call("clip", {inner->data}, {{"a_min", low}, {"a_max", high}}, expr->origin());
}

// where(c, x, y) with a uniform constant c to x or y
Result<Expr> decided_where(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  std::optional<double> condition = uniform_value(call.args[0]);
  if (!condition) return Expr();
  const Expr& chosen = call.args[*condition != 0 ? 1 : 2];
  return chosen->type() == expr->type() ? chosen : nullptr;
}

bool broadcasts_to(const Shape& a, const Shape& b, const Shape& result) {
  size_t rank = std::max(a.size(), b.size());
  if (rank != result.size()) return false;
  for (size_t i = 1; i <= rank; ++i) {
    int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if ((x == 1 ? y : x) != result[rank - i]) return false;
  }
  return true;
}

// x + broadcast_to(y) to x + y where that gives the same shape
Result<Expr> implicit_broadcast(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  for (size_t i = 0; i < 2; ++i) {
    const CallNode* broadcast = as_op(call.args[i], "broadcast_to");
    if (broadcast == nullptr ||
        !broadcasts_to(broadcast->args[0]->tensor_type().shape,
                       call.args[1 - i]->tensor_type().shape, expr->tensor_type().shape))
      continue;
    std::vector<Expr> args = call.args;
    args[i] = broadcast->args[0];
    return remake(call, std::move(args));
  }
  return Expr();
}

const std::vector<RewriteRule> kSimplifyArithmeticRules = {
    {"drop a neutral one", {"multiply", "divide", "power"}, drop_one},
    {"drop a neutral zero", {"add", "subtract"}, drop_zero},
    {"constant to the right", {"add", "multiply", "maximum", "minimum"}, constant_to_the_right},
    {"subtract to add", {"subtract"}, subtract_to_add},
    {"merge scalars", {"add", "multiply"}, merge_scalars},
    {"drop a double negative", {"negative"}, double_negative},
    {"merge clamps", {"nn.relu", "clip", "maximum", "minimum"}, merge_clamps},
    {"decide where", {"where"}, decided_where},
    {"drop an explicit broadcast",
     {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "equal", "less",
      "greater", "less_equal", "greater_equal", "not_equal", "logical_and", "logical_or"},
     implicit_broadcast},
};

}  // namespace

std::span<const RewriteRule> arithmetic_rules() { return kSimplifyArithmeticRules; }

}  // namespace collage
