// Removes redundant operators of quantised models: quantize right after dequantize by the same
// parameters, also with operators between that only move elements, and activations that clip what
// qnn.quantize saturates anyhow. Moves integers in place of the numbers made of them. Marks
// products whose weights have 7 bits.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> simplify_quantised(const Function& function);

}  // namespace collage
