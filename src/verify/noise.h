// Noise: small random changes of a tensor's elements, the same for the same seed on any number of
// threads.
#pragma once

#include <collage/tensor.h>

#include "base/result.h"

namespace collage {

struct Noise {
  double relative = 0;    // root mean square of the change, relative to each element
  double of_largest = 0;  // … relative to the largest finite magnitude
  double absolute = 0;    // … besides
  uint64_t seed = 0;
  double of_denormals = 0;  // … of those of float32 that are less than any normal number, relative
};

// Returns a copy with noise, evenly distributed; the tensor itself if it holds no real numbers.
// Zeros, infinities and NaN stay.
Result<Tensor> with_noise(const Tensor& tensor, const Noise& noise);

// Returns a float64 copy with noise added whose root mean square is `times` what `sizes` holds for
// each element; NaN where that, or the element, is not finite.
Result<Tensor> with_noise_of_sizes(const Tensor& tensor, const Tensor& sizes, double times,
                                   uint64_t seed);

// Returns a copy with NaN for infinities, as numbers that are split into parts may give.
Result<Tensor> with_nothing_infinite(const Tensor& tensor);

// Returns a copy in which one integer in `every`, on average, is one more or one less; the least
// and the largest of the type move inwards. The tensor itself unless its integers have 8 or 16
// bits.
Result<Tensor> with_moved_steps(const Tensor& tensor, uint32_t every, uint64_t seed);

}  // namespace collage
