// Evaluates calls whose arguments are all constants, with the reference kernels. What would make
// the model larger is left alone: a result bigger than its inputs is kept only when it is small or
// made from small constants (a mask), within a total. Casts and dequantised constants are always
// folded, and what lift_layouts takes out of called programs; matrices that are transposed for
// products are left to `simplify`.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> fold_constants(const Function& function);

}  // namespace collage
