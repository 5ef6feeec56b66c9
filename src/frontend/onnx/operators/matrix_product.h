// Matrix products with ONNX's semantics, for every operator that is one.
#pragma once

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

// numpy's matmul. A vector takes part as a matrix of one row (left) or one column (right), which is
// removed again; it is never transposed.
Result<Expr> matrix_product(NodeContext& node, Expr a, Expr b, bool transpose_a = false,
                            bool transpose_b = false);

// Returns data · factor; `data` itself for a factor of 1.
Result<Expr> scaled(NodeContext& node, const Expr& data, double factor);

}  // namespace collage::frontend
