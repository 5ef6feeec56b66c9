// Data for measuring a function whose real weights and inputs are not at hand: seeded, of a scale
// that keeps activations alive through deep chains, free of denormals, and with indices in range.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace collage {

// A constant of that type for a place where only shapes are known.
Result<Tensor> synthetic_constant(const TensorType& type, uint64_t seed);
// The function with constants of integers drawn anew where its operators could not take them: as
// indices beyond what they index, or as divisors of zero. synthetic_constant knows no uses.
Result<Function> with_usable_integers(const Function& function);
// The function with other weights and scales of quantised products. synthetic_constant knows no
// uses: its integers have more bits than the product may say, and with its scales nearly all
// results would saturate that are quantised again.
Result<Function> with_quantised_weights(const Function& function);
struct SyntheticRange {
  float low = -1, high = 1;
};
// One tensor a parameter: real numbers in the range; integers that every use can take (indices
// within what they index, divisors that are not zero), else 0 or 1.
Result<std::vector<Tensor>> synthetic_inputs(const Function& function, uint64_t seed,
                                             const SyntheticRange& range = {});

// Which ends of the numbers some elements of the inputs lie at.
enum class Ends {
  kOutlier,    // one far larger than all others, -0 and denormals
  kNotFinite,  // infinities and NaN besides
  kAll,        // and the largest finite numbers, whose sums and squares overflow
};
// The inputs with a few elements of each tensor of real numbers, where seeded places are, at these
// ends; tensors whose uses demand a range of their own stay what they are.
Result<std::vector<Tensor>> with_ends(const Function& function, std::vector<Tensor> inputs,
                                      Ends ends, uint64_t seed);
// The ends at which a function's kernels are checked: all where each element is computed by itself,
// no overflow where many are added up, since that may happen in one order of additions alone.
Ends ends_to_check(const Function& function);

}  // namespace collage
