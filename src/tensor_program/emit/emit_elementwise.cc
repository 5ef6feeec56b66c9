// Emission of element-wise and broadcasting operators.
#include <cmath>
#include <limits>

#include "ops/half.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

const TensorType& arg_type(const CallNode& call, size_t i) { return call.args[i]->tensor_type(); }

Term arg(Emitter& e, const CallNode& call, size_t i, const Coords& at) {
  return e.value(call.args[i],
                 broadcast_coords(arg_type(call, i).shape, call.tensor_type().shape, at));
}

bool is_plain_number(DType d) {
  return d == DType::kFloat32 || d == DType::kInt32 || d == DType::kInt64;
}

Status check_number(const CallNode& call) {
  for (const auto& a : call.args) {
    if (!a->type().is_tensor() || !is_plain_number(a->tensor_type().dtype))
      return unsupported("{} of {}", call.op->name, a->type().to_string());
  }
  return {};
}
/// For operators that give one of their arguments, or tell how they compare.
Status check_ordered(const CallNode& call) {
  return is_ordered(call) ? Status() : check_number(call);
}
Status check_bool(const CallNode& call) {
  for (const auto& a : call.args) {
    if (!a->type().is_tensor() || a->tensor_type().dtype != DType::kBool)
      return unsupported("{} of {}", call.op->name, a->type().to_string());
  }
  return {};
}
// Of half-width floats nothing but their conversion is emitted.
Status check_cast(const CallNode& call) {
  const DType to = call.tensor_type().dtype;
  if (!is_movable(to) && !is_half(to)) return unsupported("cast to {}", dtype_name(to));
  return is_half(arg_type(call, 0).dtype) ? Status() : check_movable_args(call);
}

float real(const CallNode& call, std::string_view name) {
  return static_cast<float>(call.attrs.real(name));
}

template <auto f>
Term unary(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return f(arg(e, call, 0, at), call);
}

template <auto f>
Term binary(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Term a = arg(e, call, 0, at), b = arg(e, call, 1, at);
  return f(a, b);
}

Term sigmoid(const Term& x) { return 1.0f / (1.0f + exp(-x)); }

Term softplus(const Term& x) { return max(x, 0.0f) + log1p(exp(-abs(x))); }

Term gelu_erf(const Term& x) { return 0.5f * x * (1.0f + erf(x * 0.707106781f)); }

Term gelu_tanh(const Term& x) {
  // 0.5 (1 + tanh u) is the logistic function of 2u; u = sqrt(2 / pi) (x + 0.044715 x^3).
  return x * sigmoid(1.59576912f * (x * (1.0f + 0.044715f * (x * x))));
}

/// The square root, but of -infinity infinity, as the power's definition says.
Term root(const Term& x) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  return sqrt(select(x < -kLargest, -x, x));
}

/// Squares, cubes and roots need no exp and log.
Term power_by_constant(const Term& x, double exponent) {
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return x * x;
  if (exponent == 3.0) return x * x * x;
  if (exponent == 0.5) return root(x);
  if (exponent == -0.5) return 1.0f / root(x);
  if (exponent == -1.0) return 1.0f / x;
  return power(x, static_cast<float>(exponent));
}

Term hard_sigmoid(const Term& x, float alpha, float beta) {
  return clamp(alpha * x + beta, 0.0f, 1.0f);
}

Term elu(const Term& x, float alpha) { return select(x > 0.0f, x, alpha * expm1(min(x, 0.0f))); }

Term celu(const Term& x, float alpha) {
  return select(x > 0.0f, x, alpha * expm1(min(x, 0.0f) / alpha));
}
Status check_celu(const CallNode& call) {
  if (!(call.attrs.real("alpha") > 0))
    return unsupported("nn.celu with alpha {}", call.attrs.real("alpha"));
  return check_float_args(call);
}

/// From here on sinh and cosh are e^|x| / 2. That is taken as the quotient of e^(|x| / 2) and twice
/// its reciprocal, since e^|x| is infinite before its half is.
constexpr float kLargeExponent = 64;
Term half_exp(const Term& size) {
  const Term root = exp(0.5f * size);
  return quotient(root, quotient(2.0f, root));
}

Term sinh(const Term& x) {
  const Term size = abs(x), e = expm1(min(size, kLargeExponent));
  const Term value = select(size > kLargeExponent, half_exp(size), 0.5f * (e + e / (e + 1.0f)));
  return select(x < 0.0f, -value, value);
}

Term cosh(const Term& x) {
  const Term size = abs(x), e = exp(min(size, kLargeExponent));
  return select(size > kLargeExponent, half_exp(size), 0.5f * (e + 1.0f / e));
}

Term shrink(const Term& x, float beyond, float bias) {
  return select(x < -beyond, x + bias, select(x > beyond, x - bias, 0.0f));
}

Term sign(const Term& x) {
  const DType dtype = x.dtype();
  const Term one = is_float(dtype) ? constant(1, dtype) : integer_constant(1, dtype);
  // Zeros and what is no number are themselves.
  return select(x > zero(dtype), one, select(x < zero(dtype), -one, x));
}

Term emit_power(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Term x = arg(e, call, 0, at);
  if (const auto* exponent = as<ConstantNode>(call.args[1]);
      exponent != nullptr && exponent->value.size() == 1) {
    return power_by_constant(x, exponent->value.element_as_double(0));
  }
  return power(x, arg(e, call, 1, at));
}

Term bias_add(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int64_t rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank));
  const Term x = e.value(call.args[0], at);
  return x + e.value(call.args[1], Coords{{at.logical[axis]}, {}, {}});
}

Term prelu(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int64_t rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank));
  const Term x = e.value(call.args[0], at);
  return select(x < 0.0f, x * e.value(call.args[1], Coords{{at.logical[axis]}, {}, {}}), x);
}
Status check_prelu(const CallNode& call) {
  if (arg_type(call, 1).shape.size() != 1)
    return unsupported("nn.prelu with a slope of shape {}",
                       shape_to_string(arg_type(call, 1).shape));
  return check_float_args(call);
}

Term where(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Term condition = arg(e, call, 0, at), yes = arg(e, call, 1, at);
  return select(condition, yes, arg(e, call, 2, at));
}
Status check_where(const CallNode& call) {
  if (arg_type(call, 0).dtype != DType::kBool)
    return unsupported("where with a condition of {}", dtype_name(arg_type(call, 0).dtype));
  return check_movable_args(call);
}

Status check_clip(const CallNode& call) {
  const double low = call.attrs.real("a_min"), high = call.attrs.real("a_max");
  if (low == HUGE_VAL || high == -HUGE_VAL) return unsupported("clip from {} to {}", low, high);
  return check_float_args(call);
}
Term clip(const Term& x, const CallNode& call) {
  const double low = call.attrs.real("a_min"), high = call.attrs.real("a_max");
  Term y = x;
  if (std::isfinite(low)) y = max(y, static_cast<float>(low));
  if (std::isfinite(high)) y = min(y, static_cast<float>(high));
  return y;
}

/// A float32 as an integer (runtime/casts.h). A conversion of what is out of range alone is left to
/// the processor.
Term whole(const Term& x, DType to) {
  if (is_narrow_integer(to)) return cast(to, whole(x, DType::kInt32));
  const Term least = lowest(to);
  const auto low = static_cast<double>(least->integer);
  const Term low_end = constant(low, DType::kFloat32), beyond = constant(-low, DType::kFloat32);
  return select(x >= low_end && x < beyond, cast(to, x), least);
}

Term emit_cast(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const DType from = arg_type(call, 0).dtype, to = call.tensor_type().dtype;
  Term x = arg(e, call, 0, at);
  // From and to half-width floats by way of float32, as the reference rounds.
  if (is_half(from) || is_half(to)) x = cast(DType::kFloat32, x);
  if (to == DType::kBool) return from == DType::kBool ? x : x != zero(x.dtype());
  return is_float(x.dtype()) && is_integer(to) ? whole(x, to) : cast(to, x);
}

Term first(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return e.value(call.args[0], at);
}

#define UNARY(expression) \
  unary<[](const Term& x, [[maybe_unused]] const CallNode& call) -> Term { return (expression); }>
#define BINARY(expression) binary<[](const Term& a, const Term& b) -> Term { return (expression); }>

}  // namespace

void add_elementwise_rules(EmitTable& table) {
  auto add = [&](std::string_view name, Status (*check)(const CallNode&),
                 decltype(EmitRule::emit) emit) {
    table[std::string(name)] = {check, emit, true};
  };
  add("nn.relu", check_ordered, UNARY(max(x, zero(x.dtype()))));
  add("nn.leaky_relu", check_float_args, UNARY(select(x < 0.0f, real(call, "alpha") * x, x)));
  add("nn.prelu", check_prelu, prelu);
  add("clip", check_clip, UNARY(clip(x, call)));
  add("sigmoid", check_float_args, UNARY(sigmoid(x)));
  add("tanh", check_float_args, UNARY(tanh(x)));
  add("exp", check_float_args, UNARY(exp(x)));
  add("log", check_float_args, UNARY(log(x)));
  add("sqrt", check_float_args, UNARY(sqrt(x)));
  add("rsqrt", check_float_args, UNARY(1.0f / sqrt(x)));
  add("erf", check_float_args, UNARY(erf(x)));
  add("abs", check_number, UNARY(abs(x)));
  add("negative", check_number, UNARY(-x));
  add("ceil", check_float_args, UNARY(ceil(x)));
  add("floor", check_float_args, UNARY(floor(x)));
  add("round", check_float_args, UNARY(round(x)));
  add("trunc", check_float_args, UNARY(trunc(x)));
  add("sin", check_float_args, UNARY(sin(x)));
  add("cos", check_float_args, UNARY(cos(x)));
  add("sinh", check_float_args, UNARY(sinh(x)));
  add("cosh", check_float_args, UNARY(cosh(x)));
  add("sign", check_number, UNARY(sign(x)));
  add("reciprocal", check_float_args, UNARY(1.0f / x));
  add("nn.gelu", check_float_args,
      UNARY(call.attrs.string("approximate") == "tanh" ? gelu_tanh(x) : gelu_erf(x)));
  add("nn.silu", check_float_args, UNARY(x * sigmoid(x)));
  add("nn.hard_sigmoid", check_float_args,
      UNARY(hard_sigmoid(x, real(call, "alpha"), real(call, "beta"))));
  add("nn.hard_swish", check_float_args, UNARY(x * hard_sigmoid(x, 1.0f / 6, 0.5f)));
  add("nn.elu", check_float_args, UNARY(elu(x, real(call, "alpha"))));
  add("nn.selu", check_float_args, UNARY(real(call, "gamma") * elu(x, real(call, "alpha"))));
  add("nn.celu", check_celu, UNARY(celu(x, real(call, "alpha"))));
  add("nn.softplus", check_float_args, UNARY(softplus(x)));
  add("nn.softsign", check_float_args, UNARY(quotient(x, 1.0f + abs(x))));
  add("nn.mish", check_float_args, UNARY(x * tanh(softplus(x))));
  add("nn.thresholded_relu", check_float_args, UNARY(select(x > real(call, "alpha"), x, 0.0f)));
  add("nn.shrink", check_float_args, UNARY(shrink(x, real(call, "lambd"), real(call, "bias"))));
  add("copy", check_movable_args, first);
  add("cast", check_cast, emit_cast);
  add("nn.bias_add", check_float_args, bias_add);
  add("add", check_number, BINARY(a + b));
  add("subtract", check_number, BINARY(a - b));
  add("multiply", check_number, BINARY(a * b));
  add("divide", check_float_args, BINARY(a / b));
  add("power", check_float_args, emit_power);
  add("maximum", check_ordered, BINARY(max(a, b)));
  add("minimum", check_ordered, BINARY(min(a, b)));
  add("equal", check_ordered, BINARY(a == b));
  add("not_equal", check_ordered, BINARY(a != b));
  add("less", check_ordered, BINARY(a < b));
  add("less_equal", check_ordered, BINARY(a <= b));
  add("greater", check_ordered, BINARY(a > b));
  add("greater_equal", check_ordered, BINARY(a >= b));
  add("logical_and", check_bool, BINARY(a && b));
  add("logical_or", check_bool, BINARY(a || b));
  add("logical_not", check_bool, UNARY(!x));
  add("where", check_where, where);
}

}  // namespace collage::tensor_program
