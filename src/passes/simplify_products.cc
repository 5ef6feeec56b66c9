// Rules of `simplify` around convolutions, poolings and matrix products.
#include <cmath>

#include "passes/constants.h"
#include "passes/padding.h"
#include "passes/products.h"
#include "passes/simplify.h"

namespace collage {

namespace {

// nn.pad with a constant to the padding of the convolution or pooling that follows
Result<Expr> pad_into_window(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  const CallNode* pad = as_op(call.args[0], "nn.pad");
  if (pad == nullptr) return Expr();
  std::string_view op = call.op->name;
  std::optional<double> value = scalar_value(pad->args[1]);
  if (op.starts_with("nn.max_pool")) {
    if (!value || !(std::isinf(*value) && *value < 0)) return Expr();
  } else if (!value || *value != 0) {
    return Expr();
  }
  if (op.starts_with("nn.avg_pool") && !call.attrs.flag("count_include_pad")) {
    for (int64_t width : call.attrs.ints("padding"))
      if (width != 0) return Expr();
  }
  if (op.find("pool") != op.npos && call.attrs.flag("ceil_mode")) return Expr();
  const std::optional<Ints> padding = padding_with(*pad, call);
  if (!padding) return Expr();
  Attrs attrs = call.attrs;
  attrs.set("padding", *padding);
  // Padding wider than the window is refused by poolings.
  if (op.find("pool") != op.npos) {
    const Ints& size = call.attrs.ints("pool_size");
    for (size_t i = 0; i < padding->size(); ++i)
      if ((*padding)[i] >= size[i % size.size()]) return Expr();
    // What nn.pad added was counted.
    if (op.starts_with("nn.avg_pool")) attrs.set("count_include_pad", true);
  }
  std::vector<Expr> args = call.args;
  args[0] = pad->args[0];
  return remake(call, std::move(args), std::move(attrs));
}

// nn.batch_matmul to nn.matmul
Result<Expr> batch_matmul_to_matmul(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  return make_call("nn.matmul", call.args, call.attrs, expr->origin());
}

// nn.matmul of a transposed operand: where the transpose moves the last dimension to the place
// before, the flag does that for free
Result<Expr> transpose_into_matmul(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  for (size_t i = 0; i < 2; ++i) {
    const CallNode* transpose = as_op(call.args[i], "transpose");
    if (transpose == nullptr) continue;
    const std::optional<Ints> axes = axes_besides_swap(*transpose);
    if (!axes) continue;
    std::vector<Expr> args = call.args;
    args[i] = transpose->args[0];
    if (!only_swaps_matrix_axes(*transpose))
      args[i] =
          TRY(make_call("transpose", {transpose->args[0]}, {{"axes", *axes}}, transpose->origin()));
    Attrs attrs = call.attrs;
    const char* flag = i == 0 ? "transpose_a" : "transpose_b";
    attrs.set(flag, !attrs.flag(flag));
    return remake(call, std::move(args), std::move(attrs));
  }
  return Expr();
}

// product with a constant weight + one constant a channel to nn.bias_add
Result<Expr> add_to_bias_add(const Expr& expr, const Uses&) {
  const CallNode& call = call_of(expr);
  std::optional<Product> product = product_of(call.args[0]);
  if (!product || !(call.args[0]->type() == expr->type())) return Expr();
  const auto* constant = as<ConstantNode>(call.args[1]);
  // A product of two activations (scores of an attention) has a mask, not a bias.
  if (constant == nullptr || product->call->args[1]->kind() != ExprKind::kConstant) return Expr();
  const Shape& shape = expr->tensor_type().shape;
  std::optional<Tensor> bias = along_axis(call.args[1], shape, product->result_axis);
  if (!bias || constant->value.size() != bias->size()) return Expr();
  return make_call("nn.bias_add", {call.args[0], make_constant(*bias, constant->origin())},
                   {{"axis", product->bias_axis}}, expr->origin());
}

// reshape of a matrix product (and its bias) that keeps the last dimension to the product of a
// reshape: exporters flatten in front of products and restore behind them, so that both meet
Result<Expr> reshape_before_product(const Expr& expr, const Uses& uses) {
  const CallNode& call = call_of(expr);
  const Expr& data = call.args[0];
  const CallNode* bias = as_op(data, "nn.bias_add");
  const Expr& product_expr = bias != nullptr ? bias->args[0] : data;
  std::optional<Product> product = product_of(product_expr);
  const Shape& shape = expr->tensor_type().shape;
  const Shape& old = data->tensor_type().shape;
  if (!product || product->bias_axis != -1 || shape.size() < 2 || old.empty() ||
      shape.back() != old.back() || num_elements(shape) == 0 || !uses.once(data) ||
      !uses.once(product_expr) || product->call->args[1]->tensor_type().shape.size() != 2 ||
      product->call->args[1]->kind() != ExprKind::kConstant)
    return Expr();
  if (bias != nullptr) {
    auto rank = static_cast<int64_t>(old.size());
    if (from_start(bias->attrs.integer("axis"), rank) != rank - 1) return Expr();
  }
  if (product->call->op->name.ends_with("matmul") && product->call->attrs.flag("transpose_a"))
    return Expr();
  Shape input = shape;
  input.back() = product->call->args[0]->tensor_type().shape.back();
  Expr reshaped =
      TRY(make_call("reshape", {product->call->args[0]}, {{"newshape", input}}, expr->origin()));
  std::vector<Expr> args = product->call->args;
  args[0] = reshaped;
  Expr result = TRY(remake(*product->call, std::move(args)));
  if (bias == nullptr) return result;
  return make_call("nn.bias_add", {result, bias->args[1]}, {{"axis", int64_t{-1}}}, bias->origin());
}

const std::vector<RewriteRule> kSimplifyProductsRules = {
    {"padding into the window",
     {"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d",
      "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"},
     pad_into_window},
    {"one kind of matrix product", {"nn.batch_matmul"}, batch_matmul_to_matmul},
    {"transpose into the product", {"nn.matmul", "qnn.matmul"}, transpose_into_matmul},
    {"constant per channel to bias", {"add"}, add_to_bias_add},
    {"reshape before the product", {"reshape"}, reshape_before_product},
};

}  // namespace

std::span<const RewriteRule> product_rules() { return kSimplifyProductsRules; }

}  // namespace collage
