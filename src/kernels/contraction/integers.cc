#include "kernels/contraction/integers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage::contraction {

ImageUnit image_unit(float largest) {
  if (!std::isfinite(largest)) return {1, std::numeric_limits<float>::quiet_NaN()};
  constexpr float kLeast = 1e-30f;  // whose inverse float32 holds
  largest = std::max(largest, kLeast);
  return {kImageLimit / largest, largest / kImageLimit};
}

float larger_or_nan(float a, float b) { return a > b || std::isnan(a) ? a : b; }

}  // namespace collage::contraction
