// Removes what quantised models do for nothing: quantize right after dequantize by the same
// parameters, also with operators between that only move elements, and activations that cut off
// what qnn.quantize saturates anyhow. Has integers moved in place of the numbers that they are made
// of. Tells of products whether their weights have 7 bits.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> simplify_quantised(const Function& function);

}  // namespace collage
