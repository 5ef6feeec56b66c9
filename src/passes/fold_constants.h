// Evaluates calls whose arguments are all constants, with the reference kernels. Results that would
// enlarge the model are not folded: a result bigger than its inputs is kept only if it is small or
// made from small constants (a mask), within a total. Casts and dequantised constants are always
// folded, and so is what lift_layouts takes out of called programs; matrices that are transposed
// for products are left to `simplify`.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> fold_constants(const Function& function);

}  // namespace collage
