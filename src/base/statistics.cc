#include "base/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace collage {

double percentile(std::vector<double> sample, double fraction) {
  COLLAGE_CHECK(!sample.empty(), "percentile of an empty sample");
  std::sort(sample.begin(), sample.end());
  double position = fraction * static_cast<double>(sample.size() - 1);
  size_t below = static_cast<size_t>(std::floor(position));
  size_t above = std::min(below + 1, sample.size() - 1);
  double weight = position - static_cast<double>(below);
  return sample[below] * (1 - weight) + sample[above] * weight;
}

}  // namespace collage
