#include "passes/products.h"

#include <algorithm>

#include "passes/constants.h"

namespace collage {

namespace {

// One copy of larger weights is enough: they are scaled only where nobody else uses them.
constexpr size_t kSmallWeight = size_t{64} << 10;

Tensor scaled_weight(const CallNode& call, const Tensor& weight, const Tensor& scale) {
  if (call.op->name.find("_transpose") == std::string::npos)
    return scale_along_axis(weight, scale, channel_axis(call));
  // [I, O / groups, …]: the inputs of group g make the channels from g * O / groups on.
  int64_t groups = call.attrs.integer("groups");
  int64_t rows = weight.shape()[0] / groups, columns = weight.shape()[1];
  Tensor result = weight.clone();
  int64_t block = weight.size() / (weight.shape()[0] * columns);
  for (int64_t i = 0; i < weight.shape()[0]; ++i)
    for (int64_t o = 0; o < columns; ++o) {
      double by = scale.element_as_double(i / rows * columns + o);
      int64_t begin = (i * columns + o) * block;
      for (int64_t k = begin; k < begin + block; ++k) {
        if (weight.dtype() == DType::kFloat32) {
          result.data<float>()[k] = static_cast<float>(weight.data<float>()[k] * by);
        } else {
          result.data<double>()[k] = weight.data<double>()[k] * by;
        }
      }
    }
  return result;
}

}  // namespace

int64_t channel_axis(const CallNode& product) {
  if (!product.op->name.ends_with("matmul")) return 0;
  auto rank = static_cast<int64_t>(product.args[1]->tensor_type().shape.size());
  return product.attrs.flag("transpose_b") ? rank - 2 : rank - 1;
}

std::optional<Ints> axes_besides_swap(const CallNode& transpose) {
  const auto rank = static_cast<int64_t>(transpose.args[0]->tensor_type().shape.size());
  const auto* given = std::get_if<Ints>(transpose.attrs.find("axes"));
  if (given == nullptr || static_cast<int64_t>(given->size()) != rank || rank < 2)
    return std::nullopt;
  Ints axes = from_start(*given, rank);
  if (axes[axes.size() - 2] != rank - 1) return std::nullopt;
  std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
  return axes;
}

bool only_swaps_matrix_axes(const CallNode& transpose) {
  const std::optional<Ints> axes = axes_besides_swap(transpose);
  return axes && std::is_sorted(axes->begin(), axes->end());
}

std::optional<Product> product_of(const Expr& expr) {
  const auto* call = as<CallNode>(expr);
  if (call == nullptr || call->op == nullptr) return std::nullopt;
  std::string_view name = call->op->name;
  if (name.starts_with("qnn.")) name.remove_prefix(1);
  if (name.starts_with("nn.conv")) return Product{call, 1, 1};
  auto rank = static_cast<int64_t>(expr->tensor_type().shape.size());
  if (name == "nn.dense" || name == "nn.matmul") return Product{call, rank - 1, -1};
  return std::nullopt;
}

const ConstantNode* scalable_weight(const CallNode& product, const Uses& uses) {
  const Expr& weight = product.args[1];
  const auto* constant = as<ConstantNode>(weight);
  if (constant == nullptr || !is_real(constant->value.dtype())) return nullptr;
  if (!uses.once(weight) && constant->value.bytes() > kSmallWeight) return nullptr;
  return constant;
}

std::optional<BiasedProduct> biased_product(const Expr& expr, const Uses& uses) {
  BiasedProduct result;
  result.product_expr = expr;
  if (const CallNode* bias_add = as_op(expr, "nn.bias_add")) {
    const auto* bias = as<ConstantNode>(bias_add->args[1]);
    if (bias == nullptr || !uses.once(expr)) return std::nullopt;
    result.bias = bias->value;
    result.bias_origin = bias->origin();
    result.product_expr = bias_add->args[0];
    auto rank = static_cast<int64_t>(expr->tensor_type().shape.size());
    std::optional<Product> product = product_of(result.product_expr);
    if (!product || from_start(bias_add->attrs.integer("axis"), rank) != product->result_axis)
      return std::nullopt;
  }
  std::optional<Product> product = product_of(result.product_expr);
  if (!product || !uses.once(result.product_expr)) return std::nullopt;
  result.product = *product;
  const ConstantNode* weight = scalable_weight(*product->call, uses);
  // A batch of right sides has no single channel axis.
  if (weight == nullptr || (product->call->op->name == "nn.matmul" && weight->value.rank() != 2))
    return std::nullopt;
  return result;
}

Result<Expr> scaled_product(const BiasedProduct& biased, const Tensor* scale, const Tensor* shift,
                            const std::string& origin) {
  const CallNode& call = *biased.product.call;
  Expr result = biased.product_expr;
  if (scale != nullptr) {
    const auto* weight = as<ConstantNode>(call.args[1]);
    result =
        TRY(remake(call, {call.args[0], make_constant(scaled_weight(call, weight->value, *scale),
                                                      weight->origin())}));
  }
  std::optional<Tensor> bias = biased.bias;
  if (bias && scale != nullptr)
    bias = map_constants(*bias, *scale, [](double b, double s) { return b * s; });
  if (shift != nullptr)
    bias = bias ? map_constants(*bias, *shift, [](double b, double s) { return b + s; }) : *shift;
  if (!bias) return result;
  return make_call("nn.bias_add", {result, make_constant(*bias, biased.bias_origin)},
                   {{"axis", biased.product.bias_axis}}, origin);
}

}  // namespace collage
