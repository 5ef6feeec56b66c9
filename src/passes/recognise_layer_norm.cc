#include "passes/recognise_layer_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/matcher.h"
#include "passes/constants.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

// The first axis when `mean` averages over the last axes and keeps them.
std::optional<int64_t> trailing_axis(const Expr& mean) {
  const CallNode& call = call_of(mean);
  auto rank = static_cast<int64_t>(call.args[0]->tensor_type().shape.size());
  if (!call.attrs.flag("keepdims") || call.attrs.flag("exclude") || rank == 0) return std::nullopt;
  Ints axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto* list = std::get_if<Ints>(call.attrs.find("axis"))) axes = from_start(*list, rank);
  if (const auto* one = std::get_if<int64_t>(call.attrs.find("axis")))
    axes = {from_start(*one, rank)};
  std::sort(axes.begin(), axes.end());
  if (axes.empty()) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return std::nullopt;
  return axes[0];
}

Expr full(const Expr& like, int64_t axis, double value) {
  const TensorType& type = like->tensor_type();
  Shape shape(type.shape.begin() + axis, type.shape.end());
  return make_constant(
      map_constant(Tensor::zeros(type.dtype, shape), [&](double) { return value; }));
}

struct NormSpelling {
  DFPattern root, data, mean, centred, variance, epsilon;
  bool centres;  // layer norm; else RMS norm
};

// centred / sqrt(mean(centred ** 2) + epsilon), in the ways people write quotient and square
NormSpelling norm_spelling(bool centres) {
  DFPattern data = wildcard(), epsilon = is_constant();
  DFPattern mean = is_op("mean")(data);
  // The importer gives one node for both uses, or two equal ones that became one.
  DFPattern centred = centres ? DFPattern(is_op("subtract")(data, mean)) : data;
  DFPattern square = is_op("power")(centred, is_scalar(2)) | is_op("multiply")(centred, centred);
  DFPattern variance = is_op("mean")(square);
  DFPattern shifted = is_op("add")(variance, epsilon);
  DFPattern root = is_op("sqrt")(shifted);
  DFPattern inverse = is_op("rsqrt")(shifted) | is_op("reciprocal")(root) |
                      is_op("divide")(is_scalar(1), root) |
                      is_op("power")(shifted, is_scalar(-0.5));
  DFPattern quotient = is_op("divide")(centred, root | is_op("power")(shifted, is_scalar(0.5))) |
                       is_op("multiply")(centred, inverse);
  return {quotient, data, mean, centred, variance, epsilon, centres};
}

// The written-out norm to nn.layer_norm or nn.rms_norm with gamma 1 and beta 0
Result<Expr> recognise(const Expr& expr, const NormSpelling& s) {
  if (!expr->type().is_tensor() || !is_real(expr->tensor_type().dtype)) return Expr();
  std::optional<Match> found = match(s.root, expr);
  if (!found) return Expr();
  Expr data = (*found)[s.data];
  std::optional<double> epsilon = scalar_value((*found)[s.epsilon]);
  std::optional<int64_t> axis = trailing_axis((*found)[s.variance]);
  if (!epsilon || *epsilon < 0 || !axis || !(data->type() == expr->type())) return Expr();
  if (s.centres && trailing_axis((*found)[s.mean]) != axis) return Expr();
  auto rank = static_cast<int64_t>(data->tensor_type().shape.size());
  Attrs attrs{{"axis", *axis - rank}, {"epsilon", *epsilon}};
  if (!s.centres)
    return make_call("nn.rms_norm", {data, full(data, *axis, 1)}, attrs, expr->origin());
  return make_call("nn.layer_norm", {data, full(data, *axis, 1), full(data, *axis, 0)}, attrs,
                   expr->origin());
}

Result<Expr> recognise_layer(const Expr& expr, const Uses&) {
  static const NormSpelling kSpelling = norm_spelling(true);
  return recognise(expr, kSpelling);
}

Result<Expr> recognise_rms(const Expr& expr, const Uses&) {
  static const NormSpelling kSpelling = norm_spelling(false);
  return recognise(expr, kSpelling);
}

// A constant operand as large as gamma.
std::optional<Tensor> as_gamma(const Expr& operand, const Expr& gamma) {
  const auto* constant = as<ConstantNode>(operand);
  if (constant == nullptr || constant->value.dtype() != gamma->tensor_type().dtype)
    return std::nullopt;
  const Shape& shape = gamma->tensor_type().shape;
  if (std::optional<double> value = scalar_value(operand);
      value && constant->value.shape().size() <= shape.size())
    return map_constant(Tensor::zeros(constant->value.dtype(), shape),
                        [&](double) { return *value; });
  // Leading unit dimensions do not matter.
  Shape own = constant->value.shape();
  while (own.size() > shape.size() && own[0] == 1) own.erase(own.begin());
  if (own != shape) return std::nullopt;
  return constant->value.reshaped(shape);
}

Tensor value_of(const Expr& constant) { return as<ConstantNode>(constant)->value; }

// norm(x; g, b) * c to norm(x; g * c, b * c); norm(x; g, b) + c to norm(x; g, b + c)
Result<Expr> affine(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  bool multiply = call.op->name == "multiply";
  for (size_t i = 0; i < 2; ++i) {
    const Expr& normed = call.args[i];
    const CallNode* norm = as_op(normed, "nn.layer_norm");
    if (norm == nullptr && multiply) norm = as_op(normed, "nn.rms_norm");
    if (norm == nullptr || !uses.once(normed) || !(normed->type() == expr->type())) continue;
    std::vector<Expr> args = norm->args;
    bool constant = true;
    for (size_t k = 1; k < args.size(); ++k)
      constant = constant && args[k]->kind() == ExprKind::kConstant;
    std::optional<Tensor> operand = as_gamma(call.args[1 - i], norm->args[1]);
    if (!constant || !operand) continue;
    for (size_t k = multiply ? 1 : 2; k < args.size(); ++k)
      args[k] = make_constant(map_constants(value_of(args[k]), *operand, [&](double a, double b) {
        return multiply ? a * b : a + b;
      }));
    return remake(*norm, std::move(args));
  }
  return Expr();
}

const std::vector<RewriteRule> kRecogniseLayerNormRules = {
    {"layer norm", {"divide", "multiply"}, recognise_layer},
    {"RMS norm", {"divide", "multiply"}, recognise_rms},
    {"scale or shift into the norm", {"multiply", "add"}, affine},
};

}  // namespace

Result<Function> recognise_layer_norm(const Function& function) {
  return apply_rules(function, kRecogniseLayerNormRules);
}

}  // namespace collage
