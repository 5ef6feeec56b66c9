// A common view of linear operators with a constant weight: convolutions, transposed convolutions,
// dense layers, matrix products with a constant right side, and those of quantised operands. The
// result's channels can be scaled by scaling the weight, if that is of real numbers.
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

// Returns the product that `expr` is a call of, its weight constant or not.
std::optional<Product> product_of(const Expr& expr);
// Returns the weight's axis that gives the result's channels; not for transposed convolutions.
int64_t channel_axis(const CallNode& product);

// Products exchange the last two dimensions of an operand by a flag. Returns the axes of
// `transpose` without that exchange; none unless it moves the last dimension to the place before.
std::optional<Ints> axes_besides_swap(const CallNode& transpose);
// Returns whether a transpose does nothing else.
bool only_swaps_matrix_axes(const CallNode& transpose);

// Returns the weight of the product if it is a real constant that may be replaced: it has no other
// use, or is small.
const ConstantNode* scalable_weight(const CallNode& product, const Uses& uses);

// A product, perhaps with an nn.bias_add of a constant behind it, both without other uses, the
// weight a constant that may be replaced.
struct BiasedProduct {
  Product product;
  Expr product_expr;
  std::optional<Tensor> bias;
  std::string bias_origin;
};
std::optional<BiasedProduct> biased_product(const Expr& expr, const Uses& uses);

// Returns the same function times `scale` plus `shift` (one value a channel each): scaled weight,
// one bias. No bias if both are absent or `shift` is null and there was none.
Result<Expr> scaled_product(const BiasedProduct& biased, const Tensor* scale, const Tensor* shift,
                            const std::string& origin);

}  // namespace collage
