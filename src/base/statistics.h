// Order statistics of a sample, and whether two samples differ.
#pragma once

#include <vector>

namespace collage {

// Linear interpolation between closest ranks; `fraction` in [0, 1]. The sample must not be empty.
// Never above that of a larger fraction.
double percentile(std::vector<double> sample, double fraction);
inline double median(const std::vector<double>& sample) { return percentile(sample, 0.5); }

// An interval that holds the distribution's median with a confidence of about 95%, by order
// statistics. The sample must not be empty.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::vector<double> sample);

// The Mann-Whitney U test, two-sided, by its normal approximation with ties corrected: how probable
// samples as different as these are, if both came from one distribution. 1 where either is empty.
double mann_whitney(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace collage
