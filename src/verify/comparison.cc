#include "verify/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage {

Tolerance conversion_tolerance(DType from, DType to) {
  auto unit = [](DType dtype) {
    return dtype == DType::kBFloat16 ? 0x1p-8 : dtype == DType::kFloat16 ? 0x1p-11 : 0;
  };
  return {0, 0, std::max(unit(from), unit(to))};
}

Tolerance model_tolerance(double max_error) {
  return max_error > 0 ? Tolerance{0, max_error, 0} : Tolerance{0, 1e-4, 1e-3};
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What the reference's finite elements amount to.
struct Scale {
  double largest = 0, squares = 0;
};

template <typename Element>
Scale scale_of(int64_t count, const Element& expected) {
  Scale scale;
  for (int64_t i = 0; i < count; ++i) {
    double b = expected(i);
    if (!std::isfinite(b)) continue;
    scale.largest = std::max(scale.largest, std::abs(b));
    scale.squares += b * b;
  }
  return scale;
}

template <typename Actual, typename Expected>
void compare_floats(int64_t count, const Actual& actual, const Expected& expected,
                    const Tolerance& tolerance, Difference& difference) {
  Scale scale = scale_of(count, expected);
  double allowed = tolerance.absolute +
                   tolerance.of_rms *
                       std::sqrt(scale.squares / std::max<double>(1, static_cast<double>(count))) +
                   tolerance.of_largest * scale.largest;
  double squares = 0;
  int64_t finite_errors = 0;
  for (int64_t i = 0; i < count; ++i) {
    double a = actual(i), b = expected(i);
    double error = std::abs(a - b), limit = allowed + tolerance.relative * std::abs(b);
    bool finite = std::isfinite(a) && std::isfinite(b);
    bool same = (std::isnan(a) && std::isnan(b)) || a == b;
    double of_allowed = same ? 0 : finite ? error / limit : kInfinity;
    if (of_allowed > difference.worst_of_allowed) {
      difference.worst_element = i;
      difference.worst_actual = a;
      difference.worst_expected = b;
      difference.worst_of_allowed = of_allowed;
    }
    if (std::isfinite(error)) {
      squares += error * error;
      ++finite_errors;
    }
    if (error <= limit && std::isfinite(b)) {  // never true with a NaN
      difference.max_abs = std::max(difference.max_abs, error);
      continue;
    }
    if (!finite && same) continue;
    if (finite) difference.max_abs = std::max(difference.max_abs, error);
    if (difference.within)
      difference.reason =
          finite
              ? fmt::format("element {}: {:.9g} instead of {:.9g} (allowed {:.3g})", i, a, b, limit)
              : fmt::format("element {}: {} instead of {}", i, a, b);
    difference.within = false;
  }
  difference.max_rel = scale.largest > 0 ? difference.max_abs / scale.largest : difference.max_abs;
  if (scale.squares > 0) difference.rms_rel = std::sqrt(squares / scale.squares);
  const double mean = std::sqrt(squares / std::max<double>(1, static_cast<double>(finite_errors)));
  difference.mean_of_allowed = mean == 0 ? 0 : mean / tolerance.mean;
  if (!difference.within || mean <= tolerance.mean) return;
  difference.reason = fmt::format(
      "errs by {:.3g} in root mean square (allowed {:.3g}), most in element {}: {:.9g} instead of "
      "{:.9g}",
      mean, tolerance.mean, difference.worst_element, difference.worst_actual,
      difference.worst_expected);
  difference.within = false;
}

}  // namespace

std::string proves_nothing(const Tensor& expected) {
  // Sparse outputs are common; of fewer than one element in twenty too little can be wrong.
  constexpr int64_t kSparse = 20;
  const int64_t count = expected.size();
  if (count == 0) return "";
  int64_t nonzero = 0, nan = 0;
  const bool floats = is_float(expected.dtype());
  const auto element = [&](int64_t i) {
    return floats ? expected.element_as_double(i)
                  : static_cast<double>(expected.element_as_int64(i));
  };
  const double first = element(0);
  bool same = true;
  for (int64_t i = 0; i < count; ++i) {
    const double value = element(i);
    nan += std::isnan(value);
    nonzero += value != 0 && !std::isnan(value);
    same = same && value == first;
  }
  if (nan == count) return "all NaN";
  if (nonzero == 0) return "all 0";
  if (same && count > 1) return "all the same";
  return floats && nonzero * kSparse < count ? "almost all 0" : "";
}

Difference compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance) {
  Difference difference;
  const int64_t count = expected.size();
  auto fail = [&](std::string reason) {
    difference.reason = std::move(reason);
    difference.within = false;
    return difference;
  };
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return fail("shape or dtype differ");
  if (expected.dtype() == DType::kFloat32) {
    const float *a = actual.data<float>(), *b = expected.data<float>();
    compare_floats(
        count, [a](int64_t i) { return static_cast<double>(a[i]); },
        [b](int64_t i) { return static_cast<double>(b[i]); }, tolerance, difference);
    return difference;
  }
  if (is_float(expected.dtype())) {
    compare_floats(
        count, [&](int64_t i) { return actual.element_as_double(i); },
        [&](int64_t i) { return expected.element_as_double(i); }, tolerance, difference);
    return difference;
  }
  if (expected.dtype() == DType::kBool) {
    const uint8_t* bytes = static_cast<const uint8_t*>(actual.raw());
    for (int64_t i = 0; i < count; ++i)
      if (bytes[i] > 1) return fail(fmt::format("element {}: {} is no bool", i, bytes[i]));
  }
  for (int64_t i = 0; i < count; ++i)
    if (actual.element_as_int64(i) != expected.element_as_int64(i)) {
      difference.max_abs = 1;
      return fail(fmt::format("element {}: {} instead of {}", i, actual.element_as_int64(i),
                              expected.element_as_int64(i)));
    }
  return difference;
}

}  // namespace collage
