// What one quantum more or less makes of a quantised function's results.
//
// A sum that lies in the middle of two integers becomes either when it is quantised, whose choice
// the order of additions makes; a kernel that multiplies by the reciprocal of a scale chooses
// otherwise in more places. One integer in 64 of each result of qnn.quantize is moved to its
// neighbour, more than kernels do.
#pragma once

#include <span>
#include <vector>

#include "ir/expr.h"

namespace collage {

// Whether an operator rounds to quantised integers; whether a function does so anywhere.
bool quantises(const CallNode& call);
bool quantises(const Function& function);

// The function's results with such neighbours, the same for the same seed.
Result<std::vector<Tensor>> interpret_with_neighbours(const Function& function,
                                                      std::span<const Tensor> inputs,
                                                      uint64_t seed);

}  // namespace collage
