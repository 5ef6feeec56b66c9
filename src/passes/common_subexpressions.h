// Computes equal expressions once: structurally equal nodes, constants included, become one.
#pragma once

#include "passes/pass.h"

namespace collage {

Result<Function> eliminate_common_subexpressions(const Function& function);

}  // namespace collage
