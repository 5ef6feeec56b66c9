// Scaled dot-product attention: recognised from its parts, and taken apart again for backends that
// have the parts only.
#pragma once

#include "passes/pass.h"

namespace collage {

// softmax(q · kᵀ * scale + mask) · v to nn.attention(q, k, v, mask; scale). The scale may be a
// product or quotient on the scores, on q, on k or split between both; the mask an addition or a
// where with a constant condition. A constant mask that hides exactly the future becomes
// causal=True; one of zeros is dropped. Operands are [.., tokens, size].
Result<Function> recognise_attention(const Function& function);

// The reverse, everywhere in the function and in the function literals it calls: nn.attention to
// nn.matmul, multiply, add, nn.softmax, nn.matmul.
Result<Function> expand_attention(const Function& function);

}  // namespace collage
