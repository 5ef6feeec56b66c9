// Folds the scale of a qnn.quantize into the constants of its operand: the scales of products and
// of dequantised tensors, and biases.
//
//   qnn.quantize(nn.bias_add(qnn.dense(%x, w, 0.1f, 3, scales, zeros), bias), 0.5f, 7)  →
//   qnn.quantize(nn.bias_add(qnn.dense(%x, w, 0.1f, 3, scales / 0.5f, zeros), bias / 0.5f), 1f, 7)
//
// The kernel then needs no division. Exact up to rounding: a number next to the middle of two
// integers may become the other one. Sums of dequantised tensors without a product keep the scale:
// they are whole numbers of steps, of which many lie next to a middle.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> fold_quantised_scale(const Function& function);

}  // namespace collage
