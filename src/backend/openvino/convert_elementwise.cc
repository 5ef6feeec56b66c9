// Elementwise operators of one, two and three arguments, with broadcasting.
#include <algorithm>
#include <cmath>
#include <limits>
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"

namespace collage::openvino {

namespace {

template <typename Node>
Result<ov::OutputVector> unary(const CallView& view) {
  return one(make<Node>(view[0]));
}
template <typename Node>
Result<ov::OutputVector> binary(const CallView& view) {
  return one(make<Node>(view[0], view[1]));
}

template <typename OnIntegers, typename OnBools>
Result<ov::OutputVector> bitwise(const CallView& view) {
  return view.type(0).dtype == DType::kBool ? binary<OnBools>(view) : binary<OnIntegers>(view);
}

Result<ov::OutputVector> convert_leaky_relu(const CallView& view) {
  Value slope = make<ov::op::v0::Constant>(ov::element::f32, ov::Shape{1},
                                           std::vector<double>{view.attrs.real("alpha")});
  return one(make<ov::op::v0::PRelu>(view[0], slope));
}

Result<ov::OutputVector> convert_prelu(const CallView& view) {
  int64_t axis = view.axis("axis", view.rank(0));
  bool per_channel = view.rank(1) == 1 && axis == 1 && view.rank(0) >= 2;
  if (per_channel) return one(make<ov::op::v0::PRelu>(view[0], view[1]));
  Value slope = view.rank(1) == 1 ? along_axis(view[1], axis, view.rank(0)) : view[1];
  Value below = make<ov::op::v1::Less>(view[0], scalar(0, view[0]));
  Value scaled = make<ov::op::v1::Multiply>(view[0], slope);
  return one(make<ov::op::v1::Select>(below, scaled, view[0]));
}

Result<ov::OutputVector> convert_clip(const CallView& view) {
  double low = view.attrs.real("a_min"), high = view.attrs.real("a_max");
  if (low > high) return unsupported("a_min {} above a_max {}", low, high);
  // Its Clamp has finite bounds.
  if (std::isinf(low) && std::isinf(high)) return unsupported("a clip from {} to {}", low, high);
  if (std::isinf(high)) return one(make<ov::op::v1::Maximum>(view[0], scalar(low, view[0])));
  if (std::isinf(low)) return one(make<ov::op::v1::Minimum>(view[0], scalar(high, view[0])));
  constexpr double kMost = std::numeric_limits<float>::max();
  return one(make<ov::op::v0::Clamp>(view[0], std::clamp(low, -kMost, kMost),
                                     std::clamp(high, -kMost, kMost)));
}

// OpenVINO's own exponential is infinite from 88.38.
Result<ov::OutputVector> convert_exp(const CallView& view) {
  Value half = make<ov::op::v1::Multiply>(view[0], scalar(0.5, view[0]));
  Value root = make<ov::op::v0::Exp>(half);
  return one(make<ov::op::v1::Multiply>(root, root));
}

Result<ov::OutputVector> convert_rsqrt(const CallView& view) {
  return one(make<ov::op::v1::Divide>(scalar(1, view[0]), make<ov::op::v0::Sqrt>(view[0])));
}

Result<ov::OutputVector> convert_reciprocal(const CallView& view) {
  return one(make<ov::op::v1::Divide>(scalar(1, view[0]), view[0]));
}

// A half as a constant exponent it takes for a square root, which is NaN at -infinity.
Result<ov::OutputVector> convert_power(const CallView& view) {
  const Value result = make<ov::op::v1::Power>(view[0], view[1]);
  const auto exponent = ov::as_type_ptr<ov::op::v0::Constant>(view[1].get_node_shared_ptr());
  if (exponent == nullptr) return one(result);
  const std::vector<float> exponents = exponent->cast_vector<float>();
  const auto is_half = [](float number) { return std::abs(number) == 0.5F; };
  if (!std::all_of(exponents.begin(), exponents.end(), is_half)) return one(result);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Value least = make<ov::op::v1::Equal>(view[0], scalar(-kInfinity, view[0]));
  // Of infinity the root is what the power of -infinity is.
  const Value at_least = make<ov::op::v1::Power>(scalar(kInfinity, view[0]), view[1]);
  return one(make<ov::op::v1::Select>(least, at_least, result));
}

Result<ov::OutputVector> convert_round(const CallView& view) {
  return one(make<ov::op::v5::Round>(view[0], ov::op::v5::Round::RoundMode::HALF_TO_EVEN));
}

Result<ov::OutputVector> convert_trunc(const CallView& view) {
  Value size = make<ov::op::v0::Floor>(make<ov::op::v0::Abs>(view[0]));
  return one(make<ov::op::v1::Multiply>(make<ov::op::v0::Sign>(view[0]), size));
}

// With AVX-512 the library's own by erf doubles before it halves: above half the largest number it
// is infinite, and NaN for infinity. It is the identity from 32 on.
Result<ov::OutputVector> convert_gelu(const CallView& view) {
  const Value& x = view[0];
  if (view.attrs.string("approximate") == "tanh")
    return one(make<ov::op::v7::Gelu>(x, ov::op::GeluApproximationMode::TANH));
  Value gelu = make<ov::op::v7::Gelu>(x, ov::op::GeluApproximationMode::ERF);
  if (__builtin_cpu_supports("avx512f") == 0) return one(gelu);
  Value is_large = make<ov::op::v1::Less>(scalar(32, x), x);
  return one(make<ov::op::v1::Select>(is_large, x, gelu));
}

// With AVX-512 a number is greater than NaN, but none less.
Value is_greater(const Value& a, const Value& b) { return make<ov::op::v1::Less>(b, a); }

Result<ov::OutputVector> convert_greater(const CallView& view) {
  return one(is_greater(view[0], view[1]));
}

Result<ov::OutputVector> convert_greater_equal(const CallView& view) {
  return one(make<ov::op::v1::LessEqual>(view[1], view[0]));
}

Result<ov::OutputVector> convert_hard_sigmoid(const CallView& view) {
  return one(make<ov::op::v0::HardSigmoid>(view[0], scalar(view.attrs.real("alpha"), view[0]),
                                           scalar(view.attrs.real("beta"), view[0])));
}

Result<ov::OutputVector> convert_elu(const CallView& view) {
  return one(make<ov::op::v0::Elu>(view[0], view.attrs.real("alpha")));
}

Result<ov::OutputVector> convert_selu(const CallView& view) {
  return one(make<ov::op::v0::Selu>(view[0], scalar(view.attrs.real("alpha"), view[0]),
                                    scalar(view.attrs.real("gamma"), view[0])));
}

// alpha · elu(x / alpha)
Result<ov::OutputVector> convert_celu(const CallView& view) {
  double alpha = view.attrs.real("alpha");
  if (!(alpha > 0)) return unsupported("alpha {} that is not positive", alpha);
  Value inner = make<ov::op::v1::Multiply>(view[0], scalar(1 / alpha, view[0]));
  return one(make<ov::op::v1::Multiply>(make<ov::op::v0::Elu>(inner, 1.0), scalar(alpha, view[0])));
}

Result<ov::OutputVector> convert_thresholded_relu(const CallView& view) {
  Value above = is_greater(view[0], scalar(view.attrs.real("alpha"), view[0]));
  return one(make<ov::op::v1::Select>(above, view[0], scalar(0, view[0])));
}

Result<ov::OutputVector> convert_shrink(const CallView& view) {
  const Value& x = view[0];
  double lambd = view.attrs.real("lambd");
  Value bias = scalar(view.attrs.real("bias"), x), zero = scalar(0, x);
  Value below = make<ov::op::v1::Less>(x, scalar(-lambd, x));
  Value above = is_greater(x, scalar(lambd, x));
  Value positive = make<ov::op::v1::Select>(above, make<ov::op::v1::Subtract>(x, bias), zero);
  return one(make<ov::op::v1::Select>(below, make<ov::op::v1::Add>(x, bias), positive));
}

Result<ov::OutputVector> convert_copy(const CallView& view) { return one(view[0]); }

// Anything to bool is "is not zero"; OpenVINO's own conversion would truncate first, and its
// comparison of int64 looks at 32 bits. To int64 it converts by way of int32.
Result<ov::OutputVector> convert_cast(const CallView& view) {
  ov::element::Type type = element_type(view.result().dtype);
  if (view.type(0).dtype == view.result().dtype) return one(view[0]);
  if (view.result().dtype == DType::kBool) {
    const bool is_long = view.type(0).dtype == DType::kInt64;
    const Value x = is_long ? make<ov::op::v0::Convert>(view[0], ov::element::f32) : view[0];
    return one(make<ov::op::v1::NotEqual>(x, scalar(0, x)));
  }
  if (is_float(view.type(0).dtype) && view.result().dtype == DType::kInt64)
    return unsupported("a real number as int64, which it computes in 32 bits");
  return one(make<ov::op::v0::Convert>(view[0], type));
}

Result<ov::OutputVector> convert_bias_add(const CallView& view) {
  int64_t rank = view.rank(0);
  return one(make<ov::op::v1::Add>(view[0], along_axis(view[1], view.axis("axis", rank), rank)));
}

Result<ov::OutputVector> convert_where(const CallView& view) {
  return one(make<ov::op::v1::Select>(view[0], view[1], view[2]));
}

}  // namespace

// Not here: SoftPlus, which is 7.6e-6 where the result should be near 0; Mod and FloorMod, which
// lose the digits of large quotients; comparisons of integers, which it makes of float32 in chains.
ConverterTable elementwise_converters() {
  namespace op = ov::op;
  return {
      {"nn.relu", kFloat, unary<op::v0::Relu>},
      {"nn.leaky_relu", kFloat, convert_leaky_relu},
      {"nn.prelu", kFloat, convert_prelu},
      {"clip", kFloat, convert_clip},
      {"sigmoid", kFloat, unary<op::v0::Sigmoid>},
      {"tanh", kFloat, unary<op::v0::Tanh>},
      {"exp", kFloat, convert_exp},
      {"log", kFloat, unary<op::v0::Log>},
      {"sqrt", kFloat, unary<op::v0::Sqrt>},
      {"rsqrt", kFloat, convert_rsqrt},
      {"erf", kFloat, unary<op::v0::Erf>},
      {"abs", kFloat, unary<op::v0::Abs>},
      {"negative", kFloat, unary<op::v0::Negative>},
      {"ceil", kFloat, unary<op::v0::Ceiling>},
      {"floor", kFloat, unary<op::v0::Floor>},
      {"round", kFloat, convert_round},
      {"trunc", kFloat, convert_trunc},
      {"sign", kFloat, unary<op::v0::Sign>},
      {"sin", kFloat, unary<op::v0::Sin>},
      {"cos", kFloat, unary<op::v0::Cos>},
      {"tan", kFloat, unary<op::v0::Tan>},
      {"asin", kFloat, unary<op::v0::Asin>},
      {"acos", kFloat, unary<op::v0::Acos>},
      {"atan", kFloat, unary<op::v0::Atan>},
      {"sinh", kFloat, unary<op::v0::Sinh>},
      {"cosh", kFloat, unary<op::v0::Cosh>},
      {"asinh", kFloat, unary<op::v3::Asinh>},
      {"acosh", kFloat, unary<op::v3::Acosh>},
      {"atanh", kFloat, unary<op::v3::Atanh>},
      {"reciprocal", kFloat, convert_reciprocal},
      {"nn.gelu", kFloat, convert_gelu},
      {"nn.silu", kFloat, unary<op::v4::Swish>},
      {"nn.hard_sigmoid", kFloat, convert_hard_sigmoid},
      {"nn.hard_swish", kFloat, unary<op::v4::HSwish>},
      {"nn.elu", kFloat, convert_elu},
      {"nn.selu", kFloat, convert_selu},
      {"nn.celu", kFloat, convert_celu},
      {"nn.softsign", kFloat, unary<op::v9::SoftSign>},
      {"nn.mish", kFloat, unary<op::v4::Mish>},
      {"nn.thresholded_relu", kFloat, convert_thresholded_relu},
      {"nn.shrink", kFloat, convert_shrink},
      {"isnan", kFloat | kBool, unary<op::v10::IsNaN>},
      {"isinf", kFloat | kBool, unary<op::v10::IsInf>},
      {"copy", kAny, convert_copy},
      {"cast", kAny | kLong, convert_cast},
      {"nn.bias_add", kFloat, convert_bias_add},
      {"add", kNumber, binary<op::v1::Add>},
      {"subtract", kNumber, binary<op::v1::Subtract>},
      {"multiply", kNumber, binary<op::v1::Multiply>},
      {"divide", kFloat, binary<op::v1::Divide>},
      {"power", kFloat, convert_power},
      {"maximum", kNumber, binary<op::v1::Maximum>},
      {"minimum", kNumber, binary<op::v1::Minimum>},
      {"bitwise_and", kInt | kBool, bitwise<op::v13::BitwiseAnd, op::v1::LogicalAnd>},
      {"bitwise_or", kInt | kBool, bitwise<op::v13::BitwiseOr, op::v1::LogicalOr>},
      {"bitwise_xor", kInt | kBool, bitwise<op::v13::BitwiseXor, op::v1::LogicalXor>},
      {"bitwise_not", kInt, unary<op::v13::BitwiseNot>},
      {"equal", kFloat | kBool, binary<op::v1::Equal>},
      {"not_equal", kFloat | kBool, binary<op::v1::NotEqual>},
      {"less", kFloat | kBool, binary<op::v1::Less>},
      {"less_equal", kFloat | kBool, binary<op::v1::LessEqual>},
      {"greater", kFloat | kBool, convert_greater},
      {"greater_equal", kFloat | kBool, convert_greater_equal},
      {"logical_and", kBool, binary<op::v1::LogicalAnd>},
      {"logical_or", kBool, binary<op::v1::LogicalOr>},
      {"logical_xor", kBool, binary<op::v1::LogicalXor>},
      {"logical_not", kBool, unary<op::v1::LogicalNot>},
      {"where", kNumber | kBool, convert_where},
  };
}

}  // namespace collage::openvino
