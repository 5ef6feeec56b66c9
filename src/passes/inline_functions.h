// Calls of graph functions by name, in @main, become what those functions compute. The body of a
// function takes the place of its call. A function with Primitive=1 is called as a literal instead,
// with its name as "global_symbol": whoever wrote it decided that it is one kernel, and
// partitioning keeps it whole. Then nothing calls the other functions, and they go.
//
//   def @block(%x: float32) -> float32 { nn.relu(exp(%x)) }
//   def @main(%x: float32) -> float32 { @block(%x) }             becomes { nn.relu(exp(%x)) }
//
// First of all, since later passes and partitioning look at one function at a time.
#pragma once

#include "passes/pass.h"

namespace collage {

/// Refused: functions that call themselves, and calls of calls that come to too many operators.
Result<bool> inline_functions(Module& module);

}  // namespace collage
