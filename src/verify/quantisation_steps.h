// The effect of one quantisation step on a quantised function's results.
//
// A sum in the middle of two integers is quantised to either, depending on the order of additions;
// a kernel that multiplies by the reciprocal of a scale differs in more places. One integer in 64
// of each result of qnn.quantize is moved to its neighbour, more than kernels do.
#pragma once

#include <span>
#include <vector>

#include "ir/expr.h"

namespace collage {

// Returns whether an operator rounds to quantised integers; whether any in a function does.
bool quantises(const CallNode& call);
bool quantises(const Function& function);

// Returns the function's results with such changes, the same for the same seed.
Result<std::vector<Tensor>> interpret_with_moved_steps(const Function& function,
                                                       std::span<const Tensor> inputs,
                                                       uint64_t seed);

}  // namespace collage
