#include "passes/fold_batch_norm.h"

#include <cmath>

#include "passes/constants.h"
#include "passes/products.h"
#include "passes/rewrite_rules.h"

namespace collage {

namespace {

// batch_norm(x, …).0 to x * scale + shift, or into the product before; .1 and .2 to mean and var
Result<Expr> fold_scale_and_shift(const Expr& expr, const Uses& uses) {
  const auto* item = as<TupleGetItemNode>(expr);
  const CallNode* norm = as_op(item->tuple, "nn.batch_norm");
  if (norm == nullptr) return Expr();
  if (item->index > 0) return norm->args[static_cast<size_t>(item->index) + 2];
  std::vector<Tensor> statistics;
  for (size_t i = 1; i < 5; ++i) {
    const auto* constant = as<ConstantNode>(norm->args[i]);
    if (constant == nullptr || !is_real(constant->value.dtype())) return Expr();
    statistics.push_back(constant->value);
  }
  const auto& [gamma, beta, mean, var] =
      std::tie(statistics[0], statistics[1], statistics[2], statistics[3]);
  double epsilon = norm->attrs.real("epsilon");
  Tensor scale =
      map_constants(gamma, var, [&](double g, double v) { return g / std::sqrt(v + epsilon); });
  Tensor shift = map_constants(beta, map_constants(mean, scale, std::multiplies<double>()),
                               std::minus<double>());
  const Expr& data = norm->args[0];
  auto rank = static_cast<int64_t>(data->tensor_type().shape.size());
  int64_t axis = from_start(norm->attrs.integer("axis"), rank);
  std::optional<BiasedProduct> product = biased_product(data, uses);
  if (product && product->product.result_axis == axis)
    return scaled_product(*product, &scale, &shift, norm->origin());
  Expr scaled = TRY(make_call("multiply", {data, make_constant(broadcastable(scale, rank, axis))},
                              {}, norm->origin()));
  return make_call("add", {scaled, make_constant(broadcastable(shift, rank, axis))}, {},
                   norm->origin());
}

const std::vector<RewriteRule> kFoldBatchNormRules = {
    {"fold_scale_and_shift batch norm", {kProjection}, fold_scale_and_shift}};

}  // namespace

Result<Function> fold_batch_norm(const Function& function) {
  return apply_rules(function, kFoldBatchNormRules);
}

}  // namespace collage
