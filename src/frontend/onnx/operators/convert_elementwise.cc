// Arithmetic, comparisons, logic and element-wise mathematics.
#include <cmath>

#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// Before operator set 7 the second operand was aligned by attributes: its dimensions start at
// `axis`.
Result<Expr> legacy_operand(NodeContext& node) {
  if (node.opset() >= 7 || !TRY(node.flag("broadcast", false))) return node.in(1);
  const int64_t rank = node.rank(0), own = node.rank(1);
  const int64_t axis = TRY(node.integer("axis", rank - own));
  if (axis < 0 || axis + own > rank)
    return bad_model("axis {} does not align {} dimensions with {}", axis, own, rank);
  Shape shape = node.shape(1);
  shape.resize(static_cast<size_t>(rank - axis), 1);
  return node.reshape(node.in(1), shape);
}

Converter binary(const char* op) {
  return single([op](NodeContext& node) -> Result<Expr> {
    Expr right = TRY(legacy_operand(node));
    return node.call(op, {node.in(0), right});
  });
}

Converter unary(const char* op) {
  return single([op](NodeContext& node) { return node.call(op, {node.in(0)}); });
}

// Rewrites f(a, b, c, …) to f(f(a, b), c) ….
Result<Expr> accumulate(NodeContext& node, const char* op) {
  Expr result = node.in(0);
  for (size_t i = 1; i < node.num_inputs(); ++i) result = TRY(node.call(op, {result, node.in(i)}));
  return result;
}

Converter variadic(const char* op) {
  return single([op](NodeContext& node) { return accumulate(node, op); });
}

Result<Expr> convert_mean(NodeContext& node) {
  Expr sum = TRY(accumulate(node, "add"));
  Expr count = TRY(node.scalar_like(sum, static_cast<double>(node.num_inputs())));
  return node.call("divide", {sum, count});
}

// The result has the base's type. An exponent of another type is converted first; where that would
// cut a fraction off, both are computed in double precision.
Result<Expr> convert_pow(NodeContext& node) {
  Expr exponent = TRY(legacy_operand(node));
  const DType base = node.dtype(0), power = dtype_of(exponent);
  if (base == power) return node.call("power", {node.in(0), exponent});
  if (is_float(base) || is_integer(power)) {
    exponent = TRY(node.cast(exponent, base));
    return node.call("power", {node.in(0), exponent});
  }
  Expr wide_base = TRY(node.cast(node.in(0), DType::kFloat64));
  Expr wide_power = TRY(node.cast(exponent, DType::kFloat64));
  Expr result = TRY(node.call("power", {wide_base, wide_power}));
  return node.cast(result, base);
}

Result<Expr> convert_mod(NodeContext& node) {
  const bool c_style = TRY(node.flag("fmod", false));
  return node.call(c_style ? "mod" : "floor_mod", {node.in(0), node.in(1)});
}

bool is_signed(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kInt64; }

Result<Expr> convert_bit_shift(NodeContext& node) {
  const std::string direction = TRY(node.text("direction"));
  if (direction != "LEFT" && direction != "RIGHT")
    return bad_model("direction '{}' is neither LEFT nor RIGHT", direction);
  Expr amount = node.in(1);
  // Signed types exist since operator set 28; a negative amount then shifts everything out.
  if (node.opset() >= 28 && is_signed(node.dtype(1))) {
    Expr zero = TRY(node.scalar_like(amount, 0));
    Expr all = TRY(node.scalar_like(amount, 8.0 * static_cast<double>(dtype_size(node.dtype(1)))));
    Expr negative = TRY(node.call("less", {amount, zero}));
    amount = TRY(node.call("where", {negative, all, amount}));
  }
  return node.call(direction == "LEFT" ? "left_shift" : "right_shift", {node.in(0), amount});
}

Result<Expr> convert_is_inf(NodeContext& node) {
  const bool negative = TRY(node.flag("detect_negative", true));
  const bool positive = TRY(node.flag("detect_positive", true));
  if (!negative && !positive) return node.full(DType::kBool, node.shape(0), 0);
  Expr infinite = TRY(node.call("isinf", {node.in(0)}));
  if (negative && positive) return infinite;
  Expr zero = TRY(node.scalar_like(node.in(0), 0));
  Expr sign = TRY(node.call(positive ? "greater" : "less", {node.in(0), zero}));
  return node.call("logical_and", {infinite, sign});
}

}  // namespace

ConverterRows elementwise_converters() {
  return {
      {"Abs", 1, 1, unary("abs")},
      {"Acos", 1, 1, unary("acos")},
      {"Acosh", 1, 1, unary("acosh")},
      {"Add", 2, 2, binary("add")},
      {"And", 2, 2, binary("logical_and")},
      {"Asin", 1, 1, unary("asin")},
      {"Asinh", 1, 1, unary("asinh")},
      {"Atan", 1, 1, unary("atan")},
      {"Atanh", 1, 1, unary("atanh")},
      {"BitShift", 2, 2, single(convert_bit_shift)},
      {"BitwiseAnd", 2, 2, binary("bitwise_and")},
      {"BitwiseNot", 1, 1, unary("bitwise_not")},
      {"BitwiseOr", 2, 2, binary("bitwise_or")},
      {"BitwiseXor", 2, 2, binary("bitwise_xor")},
      {"Ceil", 1, 1, unary("ceil")},
      {"Cos", 1, 1, unary("cos")},
      {"Cosh", 1, 1, unary("cosh")},
      {"Div", 2, 2, binary("divide")},
      {"Equal", 2, 2, binary("equal")},
      {"Erf", 1, 1, unary("erf")},
      {"Exp", 1, 1, unary("exp")},
      {"Floor", 1, 1, unary("floor")},
      {"Greater", 2, 2, binary("greater")},
      {"GreaterOrEqual", 2, 2, binary("greater_equal")},
      {"IsInf", 1, 1, single(convert_is_inf)},
      {"IsNaN", 1, 1, unary("isnan")},
      {"Less", 2, 2, binary("less")},
      {"LessOrEqual", 2, 2, binary("less_equal")},
      {"Log", 1, 1, unary("log")},
      {"Max", 1, -1, variadic("maximum")},
      {"Mean", 1, -1, single(convert_mean)},
      {"Min", 1, -1, variadic("minimum")},
      {"Mod", 2, 2, single(convert_mod)},
      {"Mul", 2, 2, binary("multiply")},
      {"Neg", 1, 1, unary("negative")},
      {"Not", 1, 1, unary("logical_not")},
      {"Or", 2, 2, binary("logical_or")},
      {"Pow", 2, 2, single(convert_pow)},
      {"Reciprocal", 1, 1, unary("reciprocal")},
      {"Round", 1, 1, unary("round")},
      {"Sign", 1, 1, unary("sign")},
      {"Sin", 1, 1, unary("sin")},
      {"Sinh", 1, 1, unary("sinh")},
      {"Sqrt", 1, 1, unary("sqrt")},
      {"Sub", 2, 2, binary("subtract")},
      {"Sum", 1, -1, variadic("add")},
      {"Tan", 1, 1, unary("tan")},
      {"Tanh", 1, 1, unary("tanh")},
      {"Where", 3, 3, single([](NodeContext& node) {
         return node.call("where", {node.in(0), node.in(1), node.in(2)});
       })},
      {"Xor", 2, 2, binary("logical_xor")},
  };
}

}  // namespace collage::frontend
