// Data for measuring a function without its real weights and inputs: seeded, of a scale that keeps
// activations in range through deep chains, free of denormals, and with valid indices.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace collage {

// Returns a constant of that type for a place where only shapes are known.
Result<Tensor> synthetic_constant(const TensorType& type, uint64_t seed);
// Returns the function with integer constants drawn anew that its operators could not take: indices
// out of range, divisors of zero. synthetic_constant does not know the uses.
Result<Function> with_usable_integers(const Function& function);
// Returns the function with other weights and scales of quantised products. synthetic_constant does
// not know the uses: its integers have more bits than the product may state, and with its scales
// nearly all results that are quantised again would saturate.
Result<Function> with_quantised_weights(const Function& function);
struct SyntheticRange {
  float low = -1, high = 1;
};
// Returns one tensor a parameter: real numbers in the range; integers that every use allows (valid
// indices, divisors that are not zero), else 0 or 1.
Result<std::vector<Tensor>> synthetic_inputs(const Function& function, uint64_t seed,
                                             const SyntheticRange& range = {});

// Which ends of the number range some elements of the inputs lie at.
enum class Ends {
  kOutlier,    // one far larger than all others, -0 and denormals
  kNotFinite,  // infinities and NaN besides
  kAll,        // and the largest finite numbers, whose sums and squares overflow
  kNumbers,    // all but NaN
};
// Returns the inputs with a few elements of each real tensor, at seeded places, at these ends;
// tensors whose uses require a range stay.
Result<std::vector<Tensor>> with_ends(const Function& function, std::vector<Tensor> inputs,
                                      Ends ends, uint64_t seed);
// Returns the ends at which a function's kernels are checked: all if each element is computed by
// itself, no overflow if many are added up, since one order of additions alone may overflow.
Ends ends_to_check(const Function& function);

}  // namespace collage
