// Emission of element-wise and broadcasting operators.
#include <cmath>

#include "backend/native/emitter.h"
#include "backend/native/halide_math.h"

namespace collage::native {
namespace {

const TensorType& arg_type(const CallNode& call, size_t i) { return call.args[i]->tensor_type(); }

HExpr arg(Emitter& e, const CallNode& call, size_t i, const Coords& at) {
  return e.value(call.args[i],
                 broadcast_coords(arg_type(call, i).shape, call.tensor_type().shape, at));
}

bool is_plain_number(DType d) {
  return d == DType::kFloat32 || d == DType::kInt32 || d == DType::kInt64;
}

Status check_float(const CallNode& call) {
  for (const auto& a : call.args) {
    if (!a->type().is_tensor() || a->tensor_type().dtype != DType::kFloat32)
      return unsupported("native: {} of {}", call.op->name, a->type().to_string());
  }
  return {};
}
Status check_number(const CallNode& call) {
  for (const auto& a : call.args) {
    if (!a->type().is_tensor() || !is_plain_number(a->tensor_type().dtype))
      return unsupported("native: {} of {}", call.op->name, a->type().to_string());
  }
  return {};
}
Status check_bool(const CallNode& call) {
  for (const auto& a : call.args) {
    if (!a->type().is_tensor() || a->tensor_type().dtype != DType::kBool)
      return unsupported("native: {} of {}", call.op->name, a->type().to_string());
  }
  return {};
}
bool is_movable(DType d) { return is_plain_number(d) || d == DType::kBool; }
Status check_movable(const CallNode& call) {
  for (const auto& a : call.args) {
    if (!a->type().is_tensor() || !is_movable(a->tensor_type().dtype))
      return unsupported("native: {} of {}", call.op->name, a->type().to_string());
  }
  return {};
}
Status check_cast(const CallNode& call) {
  if (!is_movable(call.tensor_type().dtype))
    return unsupported("native: cast to {}", dtype_name(call.tensor_type().dtype));
  return check_movable(call);
}

float real(const CallNode& call, std::string_view name) {
  return static_cast<float>(call.attrs.real(name));
}

template <auto f>
HExpr unary(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return f(arg(e, call, 0, at), call);
}

template <auto f>
HExpr binary(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return f(arg(e, call, 0, at), arg(e, call, 1, at));
}

HExpr hard_sigmoid(const HExpr& x, float alpha, float beta) {
  return Halide::clamp(alpha * x + beta, 0.0f, 1.0f);
}

HExpr elu(const HExpr& x, float alpha) {
  return Halide::select(x > 0.0f, x, alpha * (vector_exp(Halide::min(x, 0.0f)) - 1.0f));
}

HExpr power(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const HExpr x = arg(e, call, 0, at);
  if (const auto* exponent = as<ConstantNode>(call.args[1]);
      exponent != nullptr && exponent->value.size() == 1) {
    return power_by_constant(x, exponent->value.element_as_double(0));
  }
  return Halide::pow(x, arg(e, call, 1, at));
}

HExpr bias_add(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int64_t rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank));
  return e.value(call.args[0], at) + e.value(call.args[1], Coords{{at.logical[axis]}, {}, {}});
}

HExpr prelu(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int64_t rank = static_cast<int64_t>(call.tensor_type().shape.size());
  const auto axis = static_cast<size_t>(normal_axis_of(call, "axis", rank));
  const HExpr x = e.value(call.args[0], at);
  return Halide::select(x < 0.0f, x * e.value(call.args[1], Coords{{at.logical[axis]}, {}, {}}), x);
}
Status check_prelu(const CallNode& call) {
  if (arg_type(call, 1).shape.size() != 1)
    return unsupported("native: nn.prelu with a slope of shape {}",
                       shape_to_string(arg_type(call, 1).shape));
  return check_float(call);
}

HExpr where(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return Halide::select(arg(e, call, 0, at), arg(e, call, 1, at), arg(e, call, 2, at));
}
Status check_where(const CallNode& call) {
  if (arg_type(call, 0).dtype != DType::kBool)
    return unsupported("native: where with a condition of {}", dtype_name(arg_type(call, 0).dtype));
  return check_movable(call);
}

HExpr clip(const HExpr& x, const CallNode& call) {
  const double low = call.attrs.real("a_min"), high = call.attrs.real("a_max");
  HExpr y = x;
  if (std::isfinite(low)) y = Halide::max(y, static_cast<float>(low));
  if (std::isfinite(high)) y = Halide::min(y, static_cast<float>(high));
  return y;
}

HExpr cast(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const DType to = call.tensor_type().dtype;
  const HExpr x = arg(e, call, 0, at);
  if (to == DType::kBool)
    return arg_type(call, 0).dtype == DType::kBool ? x : x != Halide::Internal::make_zero(x.type());
  return Halide::cast(halide_type(to), x);
}

HExpr first(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  return e.value(call.args[0], at);
}

#define UNARY(expression) \
  unary<[](const HExpr& x, [[maybe_unused]] const CallNode& call) -> HExpr { return (expression); }>
#define BINARY(expression) \
  binary<[](const HExpr& a, const HExpr& b) -> HExpr { return (expression); }>

}  // namespace

void add_elementwise_rules(EmitTable& table) {
  auto add = [&](std::string_view name, Status (*check)(const CallNode&),
                 decltype(EmitRule::emit) emit) {
    table[name] = {check, emit, true};
  };
  add("nn.relu", check_number, UNARY(Halide::max(x, Halide::Internal::make_zero(x.type()))));
  add("nn.leaky_relu", check_float, UNARY(Halide::select(x < 0.0f, real(call, "alpha") * x, x)));
  add("nn.prelu", check_prelu, prelu);
  add("clip", check_float, UNARY(clip(x, call)));
  add("sigmoid", check_float, UNARY(vector_sigmoid(x)));
  add("tanh", check_float, UNARY(vector_tanh(x)));
  add("exp", check_float, UNARY(vector_exp(x)));
  add("log", check_float, UNARY(Halide::log(x)));
  add("sqrt", check_float, UNARY(Halide::sqrt(x)));
  add("rsqrt", check_float, UNARY(1.0f / Halide::sqrt(x)));
  add("erf", check_float, UNARY(Halide::erf(x)));
  add("abs", check_number, UNARY(Halide::cast(x.type(), Halide::abs(x))));
  add("negative", check_number, UNARY(-x));
  add("ceil", check_float, UNARY(Halide::ceil(x)));
  add("floor", check_float, UNARY(Halide::floor(x)));
  add("round", check_float, UNARY(Halide::round(x)));
  add("trunc", check_float, UNARY(Halide::trunc(x)));
  add("sin", check_float, UNARY(Halide::sin(x)));
  add("cos", check_float, UNARY(Halide::cos(x)));
  add("reciprocal", check_float, UNARY(1.0f / x));
  add("nn.gelu", check_float,
      UNARY(call.attrs.string("approximate") == "tanh" ? gelu_tanh(x) : gelu_erf(x)));
  add("nn.silu", check_float, UNARY(x * vector_sigmoid(x)));
  add("nn.hard_sigmoid", check_float,
      UNARY(hard_sigmoid(x, real(call, "alpha"), real(call, "beta"))));
  add("nn.hard_swish", check_float, UNARY(x * hard_sigmoid(x, 1.0f / 6, 0.5f)));
  add("nn.elu", check_float, UNARY(elu(x, real(call, "alpha"))));
  add("nn.softplus", check_float, UNARY(vector_softplus(x)));
  add("nn.softsign", check_float, UNARY(x / (1.0f + Halide::abs(x))));
  add("nn.mish", check_float, UNARY(x * vector_tanh(vector_softplus(x))));
  add("nn.thresholded_relu", check_float, UNARY(Halide::select(x > real(call, "alpha"), x, 0.0f)));
  add("copy", check_movable, first);
  add("cast", check_cast, cast);
  add("nn.bias_add", check_float, bias_add);
  add("add", check_number, BINARY(a + b));
  add("subtract", check_number, BINARY(a - b));
  add("multiply", check_number, BINARY(a * b));
  add("divide", check_float, BINARY(a / b));
  add("power", check_float, power);
  add("maximum", check_number, BINARY(Halide::max(a, b)));
  add("minimum", check_number, BINARY(Halide::min(a, b)));
  add("equal", check_number, BINARY(a == b));
  add("not_equal", check_number, BINARY(a != b));
  add("less", check_number, BINARY(a < b));
  add("less_equal", check_number, BINARY(a <= b));
  add("greater", check_number, BINARY(a > b));
  add("greater_equal", check_number, BINARY(a >= b));
  add("logical_and", check_bool, BINARY(a && b));
  add("logical_or", check_bool, BINARY(a || b));
  add("logical_not", check_bool, UNARY(!x));
  add("where", check_where, where);
}

}  // namespace collage::native
