// Noise: small random changes of a tensor's elements, the same for the same seed on any number of
// threads.
#pragma once

#include <collage/tensor.h>

#include "base/result.h"

namespace collage {

struct Noise {
  double relative = 0;    // root mean square of the change, relative to each element
  double of_largest = 0;  // … relative to the largest finite magnitude; zeros stay zeros
  uint64_t seed = 0;
};

// A copy with noise, evenly distributed; the tensor itself where it holds no real numbers.
Result<Tensor> with_noise(const Tensor& tensor, const Noise& noise);

// A copy in which one integer in `every`, on average, is one more or one less; the least and the
// largest of the type move inwards. The tensor itself where it is of none of 8 or 16 bits.
Result<Tensor> with_neighbours(const Tensor& tensor, uint32_t every, uint64_t seed);

}  // namespace collage
