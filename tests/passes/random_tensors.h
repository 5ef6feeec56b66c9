// Seeded tensors, and the comparison of two functions by what they compute.
#pragma once

#include <cstdint>

#include "ir/expr.h"

namespace collage {

// Reals uniform in [low, high); integers 0 to 7; booleans.
Tensor random_tensor(const TensorType& type, uint64_t seed, double low, double high);

// Runs both functions on the same random inputs (reals in [-2, 2)) and expects equal results,
// within 1e-4 of the largest and 1e-4 of each value (where the first computes in float16 4e-3, in
// bfloat16 3e-2); NaN and infinities at the same places.
void expect_same_values(const Function& a, const Function& b, uint64_t seed = 1);

}  // namespace collage
