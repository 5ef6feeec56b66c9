// Linear operators with a constant weight, seen alike: convolutions, transposed convolutions, dense
// layers, matrix products with a constant right side, and those of quantised operands. The result's
// channels can be scaled by scaling the weight, where that is of real numbers.
#pragma once

#include <collage/tensor.h>

#include <optional>

#include "base/result.h"
#include "ir/expr.h"
#include "passes/rewrite_rules.h"

namespace collage {

struct Product {
  const CallNode* call = nullptr;
  int64_t result_axis = 0;  // of the channels in the result, from the start
  int64_t bias_axis = 0;    // the same as nn.bias_add writes it: 1, or -1 for matrix products
};

// The product that `expr` is a call of, its weight constant or not.
std::optional<Product> product_of(const Expr& expr);
// The weight's axis that gives the result's channels; not of transposed convolutions.
int64_t channel_axis(const CallNode& product);

// Products exchange the last two dimensions of an operand by a flag: the axes of a transpose that
// moves the last dimension to the place before without that exchange, none for other transposes.
std::optional<Ints> axes_besides_swap(const CallNode& transpose);
// Whether that is all a transpose does.
bool only_swaps_matrix_axes(const CallNode& transpose);

// The weight of the product when it is a real constant that may be replaced: nobody else uses it,
// or it is small.
const ConstantNode* scalable_weight(const CallNode& product, const Uses& uses);

// A product, perhaps with an nn.bias_add of a constant behind it, both used by nobody else, the
// weight a constant that may be replaced.
struct BiasedProduct {
  Product product;
  Expr product_expr;
  std::optional<Tensor> bias;
  std::string bias_origin;
};
std::optional<BiasedProduct> biased_product(const Expr& expr, const Uses& uses);

// The same function times `scale` plus `shift` (one value a channel each): scaled weight, one
// bias. No bias where both are absent or `shift` is null and there was none.
Result<Expr> scaled_product(const BiasedProduct& biased, const Tensor* scale, const Tensor* shift,
                            const std::string& origin);

}  // namespace collage
