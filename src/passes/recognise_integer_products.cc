// Rules of `recognise_quantised` for products in wider types whose operands are bytes less their
// zero points: MatMulInteger gives them in int32, ConvInteger in float64 cast to int32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/constants.h"
#include "passes/products.h"
#include "passes/quantised.h"
#include "passes/recognise_quantised.h"

namespace collage {

namespace {

// Bytes less a zero point (int32, a scalar or a vector along an axis).
struct Centred {
  Expr bytes, zero_point;
};

template <typename T>
std::optional<Tensor> narrowed(const Tensor& values) {
  using Limits = std::numeric_limits<T>;
  Tensor result = Tensor::empty(DTypeOf<T>::value, values.shape());
  for (int64_t i = 0; i < values.size(); ++i) {
    const double value = values.element_as_double(i);
    if (!(value >= Limits::min() && value <= Limits::max()) || value != std::nearbyint(value))
      return std::nullopt;
    result.data<T>()[i] = static_cast<T>(value);
  }
  return result;
}

// A constant of bytes in a wider type, folded with its zero point.
std::optional<Centred> constant_bytes(const Expr& expr) {
  const Tensor& values = as<ConstantNode>(expr)->value;
  std::optional<Tensor> bytes = narrowed<int8_t>(values);
  if (!bytes) bytes = narrowed<uint8_t>(values);
  if (!bytes) return std::nullopt;
  return Centred{make_constant(std::move(*bytes), expr->origin()), make_scalar<int32_t>(0)};
}

// Whether it holds whole numbers of the range of bytes, as they are or in another type.
bool holds_zero_points(const Expr& expr) {
  if (const auto* constant = as<ConstantNode>(expr))
    return narrowed<int8_t>(constant->value) || narrowed<uint8_t>(constant->value);
  if (holds_bytes(expr)) return true;
  const auto* call = as<CallNode>(expr);
  return call != nullptr && call->op != nullptr &&
         (call->op->is_view || call->op->name == "cast") && holds_zero_points(call->args[0]);
}

// cast(bytes), cast(bytes) - zero point, or a constant
Result<std::optional<Centred>> centred(const Expr& expr, int64_t channel_axis) {
  using Nothing = std::optional<Centred>;
  if (expr->kind() == ExprKind::kConstant) return constant_bytes(expr);
  const CallNode* difference = as_op(expr, "subtract");
  const CallNode* cast = as_op(difference != nullptr ? difference->args[0] : expr, "cast");
  if (cast == nullptr || !holds_bytes(cast->args[0])) return Nothing();
  if (difference == nullptr) return Nothing(Centred{cast->args[0], make_scalar<int32_t>(0)});
  const Expr& zero = difference->args[1];
  const Shape& shape = expr->tensor_type().shape;
  const Shape& own = zero->tensor_type().shape;
  const int64_t count = num_elements(own);
  if (shape != cast->tensor_type().shape || !holds_zero_points(zero)) return Nothing();
  Shape flat;
  if (count != 1) {
    const int64_t from_end = static_cast<int64_t>(shape.size()) - channel_axis;
    if (channel_axis < 0 || static_cast<int64_t>(own.size()) < from_end ||
        own[own.size() - static_cast<size_t>(from_end)] != count)
      return Nothing();
    flat = {count};
  }
  Expr integers = zero;
  if (zero->tensor_type().dtype != DType::kInt32)
    integers = TRY(make_call("cast", {integers}, {{"dtype", DType::kInt32}}, zero->origin()));
  if (own != flat)
    integers = TRY(make_call("reshape", {integers}, {{"newshape", flat}}, zero->origin()));
  return Nothing(Centred{cast->args[0], std::move(integers)});
}

// How many products are summed up for an element of the result.
int64_t depth_of(const CallNode& product) {
  const Shape& shape = product.args[1]->tensor_type().shape;
  const int64_t channels = shape[static_cast<size_t>(channel_axis(product))];
  if (product.op->name == "nn.matmul") {
    const bool transposed = product.attrs.flag("transpose_b");
    return shape[shape.size() - (transposed ? 1 : 2)];
  }
  return channels == 0 ? 0 : num_elements(shape) / channels;
}

// cast(product of bytes in int32, dtype="float32") to the product of bytes
Result<Expr> product_in_int32(const Expr& expr, const Uses&) {
  if (expr->tensor_type().dtype != DType::kFloat32) return Expr();
  const Expr& sums = call_of(expr).args[0];
  if (sums->tensor_type().dtype != DType::kInt32) return Expr();
  const CallNode* inner = as_op(sums, "cast");
  const Expr& product_expr = inner != nullptr ? inner->args[0] : sums;
  const std::optional<Product> found = product_of(product_expr);
  if (!found || !found->call->op->name.starts_with("nn.") ||
      found->call->op->name.find("transpose") != std::string::npos)
    return Expr();
  const CallNode& product = *found->call;
  if (inner != nullptr && product.tensor_type().dtype != DType::kFloat64) return Expr();
  // Larger sums would leave int32, and wrap.
  constexpr int64_t kMostDifference = 255 + 128, kMost = int64_t{1} << 31;
  constexpr int64_t kMostDepth = kMost / (kMostDifference * kMostDifference);
  if (depth_of(product) >= kMostDepth) return Expr();
  const std::optional<Centred> a = TRY(centred(product.args[0], -1));
  const std::optional<Centred> b = TRY(centred(product.args[1], channel_axis(product)));
  if (!a || !b || a->bytes->kind() == ExprKind::kConstant) return Expr();
  if (product.op->name != "nn.matmul" && b->bytes->kind() != ExprKind::kConstant) return Expr();
  const Expr one = make_scalar<float>(1);
  Expr ones = one;
  if (const Shape& shape = b->zero_point->tensor_type().shape; !shape.empty()) {
    Tensor values = Tensor::empty(DType::kFloat32, shape);
    std::fill_n(values.data<float>(), values.size(), 1.0f);
    ones = make_constant(std::move(values));
  }
  return make_call("q" + product.op->name,
                   {a->bytes, b->bytes, one, a->zero_point, ones, b->zero_point}, product.attrs,
                   expr->origin());
}

const std::vector<RewriteRule> kRecogniseIntegerProductsRules = {
    {"product of bytes in int32", {"cast"}, product_in_int32},
};

}  // namespace

std::span<const RewriteRule> integer_product_rules() { return kRecogniseIntegerProductsRules; }

}  // namespace collage
