// Removes graph functions that @main does not reach. (Unused expressions are no part of a function;
// unused parameters stay: they are the model's interface.)
#pragma once

#include "passes/pass.h"

namespace collage {

Result<bool> remove_dead_code(Module& module);

}  // namespace collage
