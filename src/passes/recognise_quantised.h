// Rewrites products of dequantised integers to products of the integers:
//
//   nn.conv2d(qnn.dequantize(%x, 0.1f, 3), qnn.dequantize(weight, scales, zeros, axis=0))
//     →  qnn.conv2d(%x, weight, 0.1f, 3, scales, zeros)
//
// for data of bytes with one scale and constant weights with one, or one an output channel (of
// nn.matmul the right operand may be computed). If elements are moved between a dequantize and the
// product, the integers are moved instead. Products in int32 of bytes whose result is cast to
// float32 become the same, with scales of one.
//
// It runs before constants are folded, which makes real numbers of the remaining weights.
#pragma once

#include "passes/pass.h"
#include "passes/rewrite_rules.h"

namespace collage {

Result<Function> recognise_quantised(const Function& function);

// Its rules for products in int32 (recognise_integer_products.cc).
std::span<const RewriteRule> integer_product_rules();

}  // namespace collage
