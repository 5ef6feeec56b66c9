#include "frontend/onnx/narrowing.h"

#include <cmath>
#include <limits>

namespace collage::frontend {

namespace {

constexpr int kMantissa = 23, kBias = 127;  // of float32
constexpr double kExponentBits = 0x7f800000;

Result<Expr> to_integer(NodeContext& node, const Expr& data, const NarrowType& to) {
  const Expr wide = TRY(node.cast(data, DType::kInt32));
  Expr low =
      TRY(node.call("bitwise_and", {wide, TRY(node.scalar(DType::kInt32, (1 << to.bits) - 1))}));
  if (to.is_signed()) {
    const Expr sign = TRY(node.scalar(DType::kInt32, 1 << (to.bits - 1)));
    low = TRY(node.call("subtract", {TRY(node.call("bitwise_xor", {low, sign})), sign}));
  }
  return node.cast(low, to.carrier);
}

Result<Expr> bits_of(NodeContext& node, const Expr& real) {
  return node.call("reinterpret", {real}, {{"dtype", DType::kInt32}});
}
Result<Expr> real_of(NodeContext& node, const Expr& bits) {
  return node.call("reinterpret", {bits}, {{"dtype", DType::kFloat32}});
}
Result<Expr> integer(NodeContext& node, double value) { return node.scalar(DType::kInt32, value); }
Result<Expr> real(NodeContext& node, double value) { return node.scalar(DType::kFloat32, value); }

// A multiple of the distance of numbers of that size: the power of two of its exponent, and of the
// least one at least, by as many bits less as the mantissa has.
Result<Expr> to_float(NodeContext& node, const Expr& data, const NarrowType& to, bool saturate) {
  const Expr exponent =
      TRY(node.call("bitwise_and", {TRY(bits_of(node, data)), TRY(integer(node, kExponentBits))}));
  const Expr limited = TRY(node.call(
      "maximum", {exponent, TRY(integer(node, std::ldexp(to.least_exponent + kBias, kMantissa)))}));
  const Expr distance = TRY(real_of(
      node, TRY(node.call("subtract",
                          {limited, TRY(integer(node, std::ldexp(to.mantissa, kMantissa)))}))));
  const Expr steps = TRY(node.call("round", {TRY(node.call("divide", {data, distance}))}));
  const Expr rounded = TRY(node.call("multiply", {steps, distance}));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool clips = saturate || to.special == NarrowType::Special::kNone;
  const double beyond = clips ? static_cast<double>(to.largest)
                        : to.special == NarrowType::Special::kNaNAndInfinity
                            ? kInfinity
                            : std::numeric_limits<double>::quiet_NaN();
  const Expr above = TRY(node.call("greater", {rounded, TRY(real(node, to.largest))}));
  const Expr below = TRY(node.call("less", {rounded, TRY(real(node, -to.largest))}));
  const Expr not_below = TRY(node.call("where", {below, TRY(real(node, -beyond)), rounded}));
  const Expr within = TRY(node.call("where", {above, TRY(real(node, beyond)), not_below}));
  // NaN stays, whatever comparisons make of it; as of integers it is 0 where there is none.
  const bool has_nan = to.special != NarrowType::Special::kNone;
  const Expr of_nan = TRY(real(node, has_nan ? std::numeric_limits<double>::quiet_NaN() : 0));
  return node.call("where", {TRY(node.call("isnan", {data})), of_nan, within});
}

// The exponent of the absolute value, which stands for 2^exponent in float32's own bias; 0 is the
// least power of two, which float32 holds without its leading bit.
Result<Expr> to_power_of_two(NodeContext& node, const Expr& data, const Narrowing& how) {
  const Expr bits =
      TRY(node.call("bitwise_and", {TRY(bits_of(node, data)), TRY(integer(node, 0x7fffffff))}));
  const Expr normal = TRY(node.call("greater_equal", {bits, TRY(integer(node, 0x800000))}));
  Expr raised = bits;
  if (how.round_mode == "up") {
    raised = TRY(node.call("add", {bits, TRY(integer(node, 0x7fffff))}));
  } else if (how.round_mode == "nearest") {
    const Expr half = TRY(
        node.call("where", {normal, TRY(integer(node, 0x400000)), TRY(integer(node, 0x3fffff))}));
    raised = TRY(node.call("add", {bits, half}));
  } else if (how.round_mode != "down") {
    return bad_model("round_mode '{}' is neither up, down nor nearest", how.round_mode);
  }
  Expr exponent = TRY(node.call("right_shift", {raised, TRY(integer(node, kMantissa))}));
  constexpr double kLargest = 254, kNoNumber = 255;
  if (how.saturate) exponent = TRY(node.call("minimum", {exponent, TRY(integer(node, kLargest))}));
  const Expr power =
      TRY(real_of(node, TRY(node.call("left_shift", {exponent, TRY(integer(node, kMantissa))}))));
  const Expr least = TRY(node.call("equal", {exponent, TRY(integer(node, 0))}));
  const Expr number = TRY(node.call("where", {least, TRY(real(node, 0x1p-127)), power}));
  const Expr finite = TRY(node.call("less", {bits, TRY(integer(node, kExponentBits))}));
  const Expr is_number = TRY(node.call(
      "logical_and", {finite, TRY(node.call("less", {exponent, TRY(integer(node, kNoNumber))}))}));
  return node.call("where",
                   {is_number, number, TRY(real(node, std::numeric_limits<double>::quiet_NaN()))});
}

}  // namespace

Result<Narrowing> narrowing_of(NodeContext& node) {
  return Narrowing{TRY(node.flag("saturate", true)), TRY(node.text("round_mode", "up"))};
}

Result<Expr> narrowed(NodeContext& node, const Expr& data, const NarrowType& to,
                      const Narrowing& how) {
  if (!to.is_float()) return to_integer(node, data, to);
  const Expr single = TRY(node.cast(data, DType::kFloat32));
  if (to.special == NarrowType::Special::kPowersOfTwo) return to_power_of_two(node, single, how);
  return to_float(node, single, to, how.saturate);
}

}  // namespace collage::frontend
