// Order statistics of a sample, and a test whether two samples differ.
#pragma once

#include <vector>

namespace collage {

// Interpolates linearly between closest ranks; `fraction` in [0, 1]. The sample must not be empty.
// The result never decreases with `fraction`.
double percentile(std::vector<double> sample, double fraction);
inline double median(const std::vector<double>& sample) { return percentile(sample, 0.5); }

// An interval that holds the distribution's median with a confidence of about 95%, by order
// statistics. The sample must not be empty.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::vector<double> sample);

// The Mann-Whitney U test, two-sided, by its normal approximation with ties corrected: the
// probability of samples at least as different as these, if both came from one distribution. 1 if
// either is empty.
double mann_whitney(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace collage
