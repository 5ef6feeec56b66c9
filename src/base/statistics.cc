#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace collage {

double percentile(std::vector<double> sample, double fraction) {
  COLLAGE_CHECK(!sample.empty(), "percentile of an empty sample");
  std::sort(sample.begin(), sample.end());
  double position = fraction * static_cast<double>(sample.size() - 1);
  size_t below = static_cast<size_t>(std::floor(position));
  size_t above = std::min(below + 1, sample.size() - 1);
  double weight = position - static_cast<double>(below);
  // A weighted sum would round beside two equal values, and percentiles of one sample would cross.
  return std::lerp(sample[below], sample[above], weight);
}

Interval median_interval(std::vector<double> sample) {
  std::sort(sample.begin(), sample.end());
  // The number of observations below the median is binomial: 0.98 = 1.96 / 2 standard deviations.
  auto count = static_cast<double>(sample.size());
  double reach = 0.98 * std::sqrt(count);
  auto low = static_cast<size_t>(std::max(0.0, std::floor(count / 2 - reach)));
  auto high = static_cast<size_t>(std::min(count - 1, std::ceil(count / 2 + reach) - 1));
  return {sample[low], sample[std::max(low, high)]};
}

double mann_whitney(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, and whether it is b's
  for (double x : a) all.emplace_back(x, false);
  for (double x : b) all.emplace_back(x, true);
  std::sort(all.begin(), all.end());
  const double m = static_cast<double>(a.size()), n = static_cast<double>(b.size());
  double ranks_of_b = 0, ties = 0;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].first == all[begin].first) ++end;
    double tied = static_cast<double>(end - begin);
    double rank = (static_cast<double>(begin + end) + 1) / 2;  // their mean, from 1
    for (size_t i = begin; i < end; ++i) ranks_of_b += all[i].second ? rank : 0;
    ties += tied * tied * tied - tied;
  }
  double u = ranks_of_b - n * (n + 1) / 2;
  double variance = m * n / 12 * (m + n + 1 - ties / ((m + n) * (m + n - 1)));
  if (!(variance > 0)) return 1;
  double distance = std::max(0.0, std::abs(u - m * n / 2) - 0.5);  // 0.5: U is a whole number
  return std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0));
}

}  // namespace collage
