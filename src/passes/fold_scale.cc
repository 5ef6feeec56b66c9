#include "passes/fold_scale.h"

#include <cmath>

#include "passes/constants.h"
#include "passes/products.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

// The constant argument as one value a channel, when the other argument is a product's result.
struct Operand {
  BiasedProduct product;
  Tensor values;
};
std::optional<Operand> operand_of(const CallNode& call, const Uses& uses) {
  if (!(call.args[0]->type() == call.type())) return std::nullopt;
  std::optional<BiasedProduct> product = biased_product(call.args[0], uses);
  if (!product) return std::nullopt;
  std::optional<Tensor> values =
      along_axis(call.args[1], call.tensor_type().shape, product->product.result_axis);
  if (!values) return std::nullopt;
  return Operand{*product, *values};
}

// product * c, product / c to a product with another weight
Result<Expr> scale_result(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  std::optional<Operand> operand = operand_of(call, uses);
  if (!operand) return Expr();
  Tensor scale = operand->values;
  if (call.op->name == "divide") scale = map_constant(scale, [](double v) { return 1 / v; });
  for (int64_t i = 0; i < scale.size(); ++i)
    if (!std::isfinite(scale.element_as_double(i))) return Expr();
  return scaled_product(operand->product, &scale, nullptr, expr->origin());
}

// product + c to a product with another bias
Result<Expr> shift_result(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  std::optional<Operand> operand = operand_of(call, uses);
  if (!operand) return Expr();
  return scaled_product(operand->product, nullptr, &operand->values, expr->origin());
}

// nn.bias_add of an nn.bias_add to one
Result<Expr> merge_biases(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const auto* bias = as<ConstantNode>(call.args[1]);
  if (bias == nullptr || !is_real(bias->value.dtype()) ||
      as_op(call.args[0], "nn.bias_add") == nullptr)
    return Expr();
  std::optional<BiasedProduct> product = biased_product(call.args[0], uses);
  auto rank = static_cast<int64_t>(expr->tensor_type().shape.size());
  if (!product || from_start(call.attrs.integer("axis"), rank) != product->product.result_axis)
    return Expr();
  return scaled_product(*product, nullptr, &bias->value, expr->origin());
}

// product(x * scalar) to a product with another weight
Result<Expr> scale_input(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const ConstantNode* weight = scalable_weight(call, uses);
  if (weight == nullptr || !uses.once(call.args[0])) return Expr();
  for (std::string_view name : {"multiply", "divide"}) {
    const CallNode* scaled = as_op(call.args[0], name);
    if (scaled == nullptr || !(scaled->args[0]->type() == call.args[0]->type())) continue;
    std::optional<double> factor = scalar_value(scaled->args[1]);
    if (!factor || !std::isfinite(*factor) || *factor == 0) continue;
    double by = name == "divide" ? 1 / *factor : *factor;
    Tensor new_weight = map_constant(weight->value, [&](double v) { return v * by; });
    return remake(call, {scaled->args[0], make_constant(new_weight, weight->origin())});
  }
  return Expr();
}

const std::vector<RewriteRule> kFoldScaleRules = {
    {"scale a product's result", {"multiply", "divide"}, scale_result},
    {"shift a product's result", {"add"}, shift_result},
    {"merge biases", {"nn.bias_add"}, merge_biases},
    {"scale a product's input",
     {"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul", "nn.conv1d_transpose",
      "nn.conv2d_transpose", "nn.conv3d_transpose"},
     scale_input},
};

}  // namespace

Result<Function> fold_scale(const Function& function) {
  return apply_rules(function, kFoldScaleRules);
}

}  // namespace collage
