// Scaled dot-product attention: recognised from its parts, and expanded again for backends without
// it.
#pragma once

#include "passes/pass.h"

namespace collage {

// Rewrites softmax(q · kᵀ * scale + mask) · v to nn.attention(q, k, v, mask; scale). The scale may
// be a product or quotient on the scores, on q, on k or split between both; the mask an addition or
// a where with a constant condition. A constant mask that hides exactly the future becomes
// causal=True; one of zeros is dropped; where(isnan(weights), 0, weights) beside masks that
// leave every row a key becomes zero_nan=True. Operands are [.., tokens, size].
Result<Function> recognise_attention(const Function& function);

// Rewrites nn.attention to nn.matmul, multiply, add, nn.softmax, nn.matmul, in the function and in
// the function literals it calls.
Result<Function> expand_attention(const Function& function);

}  // namespace collage
