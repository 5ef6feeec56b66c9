// Order statistics of a sample.
#pragma once

#include <vector>

namespace collage {

// Linear interpolation between closest ranks; `fraction` in [0, 1]. The sample must not be empty.
double percentile(std::vector<double> sample, double fraction);
inline double median(const std::vector<double>& sample) { return percentile(sample, 0.5); }

}  // namespace collage
