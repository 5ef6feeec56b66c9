// Elementwise operators of one tensor: one table row each. Floats are computed in double and
// rounded once, so that the reference is right to the last bit that float has.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace collage {

namespace {

using Real = double (*)(double x, const double* p);  // p: the row's attributes, in order

struct Row {
  const char* name;
  Real f;
  std::vector<AttrSpec> attrs = {};
};

double round_half_even(double x, const double*) { return std::nearbyint(x); }
double sigmoid(double x, const double*) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x, const double*) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double elu(double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }

// Operators that are defined for floating point only.
const std::vector<Row>& float_rows() {
  static const std::vector<Row> rows = {
      {"sigmoid", sigmoid},
      {"tanh", [](double x, const double*) { return std::tanh(x); }},
      {"exp", [](double x, const double*) { return std::exp(x); }},
      {"log", [](double x, const double*) { return std::log(x); }},
      {"sqrt", [](double x, const double*) { return std::sqrt(x); }},
      {"rsqrt", [](double x, const double*) { return 1.0 / std::sqrt(x); }},
      {"erf", [](double x, const double*) { return std::erf(x); }},
      {"ceil", [](double x, const double*) { return std::ceil(x); }},
      {"floor", [](double x, const double*) { return std::floor(x); }},
      {"round", round_half_even},
      {"trunc", [](double x, const double*) { return std::trunc(x); }},
      {"sin", [](double x, const double*) { return std::sin(x); }},
      {"cos", [](double x, const double*) { return std::cos(x); }},
      {"tan", [](double x, const double*) { return std::tan(x); }},
      {"asin", [](double x, const double*) { return std::asin(x); }},
      {"acos", [](double x, const double*) { return std::acos(x); }},
      {"atan", [](double x, const double*) { return std::atan(x); }},
      {"sinh", [](double x, const double*) { return std::sinh(x); }},
      {"cosh", [](double x, const double*) { return std::cosh(x); }},
      {"asinh", [](double x, const double*) { return std::asinh(x); }},
      {"acosh", [](double x, const double*) { return std::acosh(x); }},
      {"atanh", [](double x, const double*) { return std::atanh(x); }},
      {"reciprocal", [](double x, const double*) { return 1.0 / x; }},
      {"nn.leaky_relu",
       [](double x, const double* p) { return x < 0 ? p[0] * x : x; },
       {{"alpha", 0.01}}},
      {"nn.silu", [](double x, const double* p) { return x * sigmoid(x, p); }},
      {"nn.hard_sigmoid",
       [](double x, const double* p) { return std::clamp(p[0] * x + p[1], 0.0, 1.0); },
       {{"alpha", 0.2}, {"beta", 0.5}}},
      {"nn.hard_swish",
       [](double x, const double*) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }},
      {"nn.elu", [](double x, const double* p) { return elu(x, p[0]); }, {{"alpha", 1.0}}},
      {"nn.selu",
       [](double x, const double* p) { return p[1] * elu(x, p[0]); },
       {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}},
      {"nn.celu",
       [](double x, const double* p) { return x > 0 ? x : p[0] * std::expm1(x / p[0]); },
       {{"alpha", 1.0}}},
      {"nn.softplus", softplus},
      {"nn.softsign", [](double x, const double*) { return x / (1 + std::abs(x)); }},
      {"nn.mish", [](double x, const double* p) { return x * std::tanh(softplus(x, p)); }},
      {"nn.thresholded_relu",
       [](double x, const double* p) { return x > p[0] ? x : 0.0; },
       {{"alpha", 1.0}}},
      {"nn.shrink",
       [](double x, const double* p) { return x < -p[0]  ? x + p[1]
                                              : x > p[0] ? x - p[1]
                                                         : 0.0; },
       {{"lambd", 0.5}, {"bias", 0.0}}},
  };
  return rows;
}

OpDef float_op(const Row& row) {
  OpDef op;
  op.name = row.name;
  op.attrs = row.attrs;
  op.kind = FusionKind::kElementwise;
  op.infer_type = same_as_float;
  op.reference = with_halves([&row](std::span<const Tensor> inputs, const Attrs& attrs,
                                    std::span<Tensor> outputs) -> Status {
    double p[4] = {};
    for (size_t i = 0; i < row.attrs.size(); ++i) p[i] = attrs.real(row.attrs[i].name);
    const Real f = row.f;
    dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
      const T* x = inputs[0].data<T>();
      T* y = outputs[0].data<T>();
      const int64_t n = outputs[0].size();
#pragma omp parallel for schedule(static) if (n > 4096)
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(f(static_cast<double>(x[i]), p));
    });
    return {};
  });
  return op;
}

Result<Type> infer_number(Types args, const Attrs&) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_number(data, "data"));
  return Type(data);
}

Result<Type> infer_clip(Types args, const Attrs& attrs) {
  if (std::isnan(attrs.real("a_min")) || std::isnan(attrs.real("a_max")))
    return bad_model("a bound is not a number");
  return infer_number(args, attrs);
}

// Defined for integers too. `body(tag, attrs)` gives the function of one element.
template <typename Body>
OpDef number_op(std::string name, Body body, std::vector<AttrSpec> attrs = {}) {
  OpDef op;
  op.name = std::move(name);
  op.attrs = std::move(attrs);
  op.kind = FusionKind::kElementwise;
  op.infer_type = infer_number;
  op.reference = with_halves([body](std::span<const Tensor> inputs, const Attrs& attrs,
                                    std::span<Tensor> outputs) -> Status {
    dispatch_number(outputs[0].dtype(), [&]<typename T>(Tag<T> tag) {
      map_elements<T, T>(inputs[0], outputs[0], body(tag, attrs));
    });
    return {};
  });
  return op;
}

// `value` as T, held to T's range, so that a clip bound beyond it does nothing.
template <typename T>
T saturate(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    if (value <= static_cast<double>(std::numeric_limits<T>::min()))
      return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  }
}

void register_number_ops() {
  register_op(number_op("nn.relu", []<typename T>(Tag<T>, const Attrs&) {
    return [](T x) { return x < T{0} ? T{0} : x; };  // NaN stays NaN
  }));
  register_op(number_op("abs", []<typename T>(Tag<T>, const Attrs&) {
    return [](T x) {
      if constexpr (std::is_floating_point_v<T>)
        return std::abs(x);
      else
        return x < T{0} ? wrap_subtract(T{0}, x) : x;
    };
  }));
  register_op(number_op("negative", []<typename T>(Tag<T>, const Attrs&) {
    return [](T x) {
      if constexpr (std::is_floating_point_v<T>)
        return -x;
      else
        return wrap_subtract(T{0}, x);
    };
  }));
  register_op(number_op("sign", []<typename T>(Tag<T>, const Attrs&) {
    return [](T x) -> T {
      if (x > T{0}) return T{1};
      if (x == T{0}) return T{0};
      if constexpr (std::is_floating_point_v<T>)
        return x < T{0} ? T{-1} : x;
      else
        return static_cast<T>(-1);
    };
  }));
  OpDef clip = number_op("clip",
                         []<typename T>(Tag<T>, const Attrs& attrs) {
                           T low = saturate<T>(attrs.real("a_min")),
                             high = saturate<T>(attrs.real("a_max"));
                           return [low, high](T x) {
                             x = x < low ? low : x;
                             return x > high ? high : x;
                           };
                         },
                         {{"a_min", 0.0, true}, {"a_max", 0.0, true}});
  clip.infer_type = infer_clip;
  register_op(std::move(clip));
  OpDef bitwise_not = number_op("bitwise_not", []<typename T>(Tag<T>, const Attrs&) {
    return [](T x) {
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(~x);
      else
        return x;
    };
  });
  bitwise_not.infer_type = [](Types args, const Attrs&) -> Result<Type> {
    TensorType data = TRY(tensor_arg(args, 0));
    TRY(require_integer(data, "data"));
    return Type(data);
  };
  register_op(std::move(bitwise_not));
}

void register_gelu() {
  OpDef op;
  op.name = "nn.gelu";
  op.attrs = {{"approximate", std::string("none")}};
  op.kind = FusionKind::kElementwise;
  op.infer_type = [](Types args, const Attrs& attrs) -> Result<Type> {
    TRY(require_one_of(attrs.string("approximate"), {"none", "tanh"}, "approximation"));
    return same_as_float(args, attrs);
  };
  op.reference = with_halves(
      [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) -> Status {
        const bool by_tanh = attrs.string("approximate") == "tanh";
        auto f = [by_tanh](double x) {
          if (!by_tanh) return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
          return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
        };
        dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
          map_elements<T, T>(inputs[0], outputs[0],
                             [f](T x) { return static_cast<T>(f(static_cast<double>(x))); });
        });
        return {};
      });
  register_op(std::move(op));
}

template <typename F>
void register_test(std::string name, F test) {
  OpDef op;
  op.name = std::move(name);
  op.kind = FusionKind::kElementwise;
  op.infer_type = [](Types args, const Attrs&) -> Result<Type> {
    TensorType data = TRY(tensor_arg(args, 0));
    TRY(require_float(data, "data"));
    return Type(TensorType{data.shape, DType::kBool});
  };
  op.reference = with_halves(
      [test](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) -> Status {
        dispatch_float(inputs[0].dtype(), [&]<typename T>(Tag<T>) {
          map_elements<T, uint8_t>(inputs[0], outputs[0],
                                   [test](T x) { return static_cast<uint8_t>(test(x)); });
        });
        return {};
      });
  register_op(std::move(op));
}

void register_logical_not() {
  OpDef op;
  op.name = "logical_not";
  op.kind = FusionKind::kElementwise;
  op.infer_type = [](Types args, const Attrs&) -> Result<Type> {
    TensorType data = TRY(tensor_arg(args, 0));
    if (data.dtype != DType::kBool)
      return bad_model("data must be bool, not {}", dtype_name(data.dtype));
    return Type(data);
  };
  op.reference = [](std::span<const Tensor> inputs, const Attrs&,
                    std::span<Tensor> outputs) -> Status {
    map_elements<uint8_t, uint8_t>(inputs[0], outputs[0],
                                   [](uint8_t x) { return static_cast<uint8_t>(x == 0); });
    return {};
  };
  register_op(std::move(op));
}

}  // namespace

void register_unary_ops() {
  for (const Row& row : float_rows()) register_op(float_op(row));
  register_number_ops();
  register_gelu();
  register_test("isnan", [](auto x) { return std::isnan(x); });
  register_test("isinf", [](auto x) { return std::isinf(x); });
  register_logical_not();
}

}  // namespace collage
