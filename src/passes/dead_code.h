// Removes definitions that @main does not reach, and external modules that no function is declared
// for. (Unused expressions are no part of a function;
// unused parameters stay: they are the model's interface.)
#pragma once

#include "passes/pass.h"

namespace collage {

Result<bool> remove_dead_code(Module& module);

}  // namespace collage
