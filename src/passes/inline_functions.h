// Inlines calls of graph functions by name in @main. A function with Primitive=1 is called as a
// literal instead, with its name as "global_symbol": it is one kernel, and partitioning keeps it
// whole. Functions without callers are removed.
//
//   def @block(%x: float32) -> float32 { nn.relu(exp(%x)) }
//   def @main(%x: float32) -> float32 { @block(%x) }             becomes { nn.relu(exp(%x)) }
//
// What the attributes "param_devices" and "result_devices" of a function state, @main's too,
// becomes placements (ops/placement.h) of its parameters and its result.
//
// It runs first, since later passes and partitioning look at one function at a time.
#pragma once

#include <set>

#include "passes/pass.h"

namespace collage {

// Replaces calls of these function literals by the functions' bodies. False: there is none.
Result<bool> take_apart(Module& module, const std::set<const FunctionNode*>& functions);

/// Returns the function with the calls inside it inlined.
Result<Function> inlined_function(const Module& module, const std::string& name);

/// Refuses functions that call themselves, and nested calls of too many operators in all.
Result<bool> inline_functions(Module& module);

}  // namespace collage
