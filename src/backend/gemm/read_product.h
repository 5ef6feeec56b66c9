// A function as one product of matrices: result = alpha * A · B + addend, with any batch
// dimensions. The anchor is nn.dense, nn.matmul or nn.batch_matmul; a multiplication by a scalar
// constant becomes alpha, and a sum with anything that is broadcast to the result the addend.
//
// Rows of A over one and the same B are merged into one large matrix.
#pragma once

#include "backend/gemm/kernels/product.h"
#include "ir/expr.h"

namespace collage::gemm {

/// Checks whether the call can be the anchor; sees types and attributes only.
Status check_anchor(const CallNode& call);
/// Returns whether `call`, whose argument `position` is the running value, can become alpha (if
/// nothing was added yet) or the addend (the last step).
bool is_scale(const CallNode& call, size_t position);
bool is_sum(const CallNode& call, size_t position);

/// Fails if the function is no such product. `function` is flat.
Result<Product> read_product(const Function& function);

}  // namespace collage::gemm
