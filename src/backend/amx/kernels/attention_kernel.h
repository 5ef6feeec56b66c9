// The kernel of attention. It splits the keys and values of each head into parts and packs them as
// right operands; then, for each block of 32 queries,
//
//   scores = q · kᵀ / log 2, [block of 32 keys][query][key]
//   weights = 2^(scores - a large one of the row), in parts, in the scores' place; and their sums
//   result = weights · v / sums
//
// all in a core's own cache. Under a causal mask a block skips the keys that come after all of its
// queries.
#pragma once

#include <memory>

#include "backend/amx/kernels/attention.h"
#include "runtime/kernel.h"

namespace collage::amx {

/// `parts` of each number, see tiles.h.
Result<std::unique_ptr<Kernel>> make_attention_kernel(Attention attention, int parts, int threads);

}  // namespace collage::amx
