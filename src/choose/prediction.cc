#include "choose/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "base/statistics.h"

namespace collage {

namespace {

constexpr size_t kParameters = 2;
using Vector = std::array<double, kParameters>;

// How far a parameter is from what is assumed, usually, and how far it may go.
struct Prior {
  double value, spread, low, high;
};
constexpr std::array<Prior, kParameters> kPriors = {
    Prior{1, 0.03, 0.9, 1.1},
    Prior{kSecondsPerSwitch, 40e-6, 0, 300e-6},
};
constexpr double kLeastNoise = 0.03;  // relative error that no correction explains
constexpr double kOutlier = 0.05;     // beyond, an error counts less and less
constexpr int kIterations = 8;

Vector parts_of(const TimingRow& cover) {
  return {cover.kernel_seconds, static_cast<double>(cover.switches)};
}

// What the correction errs by, relative.
double error_of(const Correction& correction, const TimingRow& cover) {
  return correction.predict(cover.kernel_seconds, cover.switches) / cover.measured.median - 1;
}

// By how much models disagree with it: a model is measured within some minutes, which may be worse
// ones than another's, and so errs as a whole. 1.5 medians are about a standard deviation.
double noise_of(const Correction& correction, std::span<const TimingRow> timings) {
  std::map<std::string, std::vector<double>> errors;
  for (const TimingRow& cover : timings)
    errors[cover.source].push_back(error_of(correction, cover));
  std::vector<double> of_models;
  for (const auto& [model, all] : errors) of_models.push_back(std::abs(median(all)));
  return of_models.empty() ? kLeastNoise : std::max(kLeastNoise, 1.5 * median(of_models));
}

// The matrix is symmetric and positive definite, thanks to the ridge.
Vector solve(const std::array<Vector, kParameters>& m, const Vector& right) {
  const double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
  return {(right[0] * m[1][1] - right[1] * m[0][1]) / determinant,
          (right[1] * m[0][0] - right[0] * m[1][0]) / determinant};
}

}  // namespace

Correction learn_correction(std::span<const TimingRow> timings) {
  std::map<std::string, double> covers;  // of each model
  for (const TimingRow& cover : timings) ++covers[cover.source];
  Correction result;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    // In units of the spreads, relative to the assumed values.
    std::array<Vector, kParameters> matrix{};
    Vector right{};
    for (size_t k = 0; k < kParameters; ++k) matrix[k][k] = 1;
    const double noise = noise_of(result, timings);
    for (const TimingRow& cover : timings) {
      double error = std::abs(error_of(result, cover));
      double weight =
          std::min(1.0, kOutlier / std::max(error, 1e-9)) / covers[cover.source] / (noise * noise);
      Vector parts = parts_of(cover), slope{};
      double rest = 1;
      for (size_t k = 0; k < kParameters; ++k) {
        rest -= kPriors[k].value * parts[k] / cover.measured.median;
        slope[k] = kPriors[k].spread * parts[k] / cover.measured.median;
      }
      for (size_t i = 0; i < kParameters; ++i) {
        for (size_t j = 0; j < kParameters; ++j) matrix[i][j] += weight * slope[i] * slope[j];
        right[i] += weight * slope[i] * rest;
      }
    }
    Vector x = solve(matrix, right);
    auto value = [&](size_t k) {
      return std::clamp(kPriors[k].value + kPriors[k].spread * x[k], kPriors[k].low,
                        kPriors[k].high);
    };
    result = {value(0), value(1)};
  }
  return result;
}

}  // namespace collage
