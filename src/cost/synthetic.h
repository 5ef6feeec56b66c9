// Data for measuring a function whose real weights and inputs are not at hand: seeded, of a scale
// that keeps activations alive through deep chains, free of denormals, and with indices in range.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace collage {

// A constant of that type for a place where only shapes are known.
Result<Tensor> synthetic_constant(const TensorType& type, uint64_t seed);
// One tensor a parameter. Integer parameters that index something get indices in range; others are
// small non-negative numbers.
Result<std::vector<Tensor>> synthetic_inputs(const Function& function, uint64_t seed);

}  // namespace collage
