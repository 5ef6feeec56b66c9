#include "verify/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/integers.h"
#include "ops/quantised.h"

namespace collage {

namespace {

// Of one rounding, relative; none of types that hold all that others do.
double rounding_of(DType dtype) {
  return dtype == DType::kBFloat16 ? 0x1p-8 : dtype == DType::kFloat16 ? 0x1p-11 : 0;
}

}  // namespace

Tolerance conversion_tolerance(DType from, DType to) {
  return {0, 0, std::max(rounding_of(from), rounding_of(to))};
}

Tolerance model_tolerance(double max_error) {
  return max_error > 0 ? Tolerance{0, max_error, 0} : Tolerance{0, 1e-4, 1e-3};
}

Tolerance half_tolerance(DType half, double max_error) {
  return {0, (half == DType::kBFloat16 ? 8e-2 : 1e-2) + max_error, 0};
}

Tolerance quantised_tolerance(double max_error) {
  constexpr double kOfLargest = 8e-2;
  return {.of_largest = kOfLargest + max_error, .quanta = 256 * (kOfLargest + max_error)};
}

Tolerance kept_as(Tolerance tolerance, DType dtype) {
  tolerance.relative += 2 * rounding_of(dtype);
  return tolerance;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Elements that one thread looks at; sums are added up in the order of such parts, whoever looked.
constexpr int64_t kPart = 1 << 15;

// A T of each part of `count` elements, in order: part(begin, end).
template <typename T, typename Part>
std::vector<T> of_parts(int64_t count, const Part& part) {
  std::vector<T> results(static_cast<size_t>(ceil_div(count, kPart)));
  const auto parts = static_cast<int64_t>(results.size());
#pragma omp parallel for if (parts > 1)
  for (int64_t p = 0; p < parts; ++p)
    results[static_cast<size_t>(p)] = part(p * kPart, std::min(count, (p + 1) * kPart));
  return results;
}

// What the reference's finite elements amount to.
struct Scale {
  double largest = 0, squares = 0;
};

template <typename Element>
Scale scale_of(int64_t count, const Element& expected) {
  Scale all;
  for (const Scale& part : of_parts<Scale>(count, [&](int64_t begin, int64_t end) {
         Scale scale;
         for (int64_t i = begin; i < end; ++i) {
           const double b = expected(i);
           if (!std::isfinite(b)) continue;
           scale.largest = std::max(scale.largest, std::abs(b));
           scale.squares += b * b;
         }
         return scale;
       })) {
    all.largest = std::max(all.largest, part.largest);
    all.squares += part.squares;
  }
  return all;
}

// How far elements are from the reference's; -1: none.
struct Errors {
  double squares = 0;  // of the finite errors
  int64_t count = 0;   // of these
  double max_abs = 0;
  double worst_of_allowed = 0;
  int64_t worst = -1, first_wrong = -1;

  void add(const Errors& later) {
    squares += later.squares;
    count += later.count;
    max_abs = std::max(max_abs, later.max_abs);
    if (later.worst_of_allowed > worst_of_allowed) {
      worst_of_allowed = later.worst_of_allowed;
      worst = later.worst;
    }
    if (first_wrong < 0) first_wrong = later.first_wrong;
  }
};

template <typename Actual, typename Expected>
Errors errors_of(int64_t count, const Actual& actual, const Expected& expected, double allowed,
                 double relative) {
  Errors all;
  for (const Errors& part : of_parts<Errors>(count, [&](int64_t begin, int64_t end) {
         Errors errors;
         for (int64_t i = begin; i < end; ++i) {
           const double a = actual(i), b = expected(i);
           const double error = std::abs(a - b), limit = allowed + relative * std::abs(b);
           const bool finite = std::isfinite(a) && std::isfinite(b);
           const bool same = (std::isnan(a) && std::isnan(b)) || a == b;
           const double of_allowed = same ? 0 : finite ? error / limit : kInfinity;
           if (of_allowed > errors.worst_of_allowed) {
             errors.worst_of_allowed = of_allowed;
             errors.worst = i;
           }
           if (finite) errors.max_abs = std::max(errors.max_abs, error);
           if (std::isfinite(error)) {
             errors.squares += error * error;
             ++errors.count;
           }
           const bool right = finite ? error <= limit : same;
           if (!right && errors.first_wrong < 0) errors.first_wrong = i;
         }
         return errors;
       }))
    all.add(part);
  return all;
}

template <typename Actual, typename Expected>
void compare_floats(int64_t count, const Actual& actual, const Expected& expected,
                    const Tolerance& tolerance, Difference& difference) {
  const Scale scale = scale_of(count, expected);
  const double allowed =
      tolerance.absolute +
      tolerance.of_rms *
          std::sqrt(scale.squares / std::max<double>(1, static_cast<double>(count))) +
      tolerance.of_largest * scale.largest;
  const Errors errors = errors_of(count, actual, expected, allowed, tolerance.relative);
  difference.max_abs = errors.max_abs;
  difference.worst_of_allowed = errors.worst_of_allowed;
  if (errors.worst >= 0) {
    difference.worst_element = errors.worst;
    difference.worst_actual = actual(errors.worst);
    difference.worst_expected = expected(errors.worst);
  }
  difference.max_rel = scale.largest > 0 ? difference.max_abs / scale.largest : difference.max_abs;
  if (scale.squares > 0) difference.rms_rel = std::sqrt(errors.squares / scale.squares);
  const double mean =
      std::sqrt(errors.squares / std::max<double>(1, static_cast<double>(errors.count)));
  difference.mean_of_allowed = mean == 0 ? 0 : mean / tolerance.mean;
  if (const int64_t i = errors.first_wrong; i >= 0) {
    const double a = actual(i), b = expected(i);
    difference.within = false;
    difference.reason = std::isfinite(a) && std::isfinite(b)
                            ? fmt::format("element {}: {:.9g} instead of {:.9g} (allowed {:.3g})",
                                          i, a, b, allowed + tolerance.relative * std::abs(b))
                            : fmt::format("element {}: {} instead of {}", i, a, b);
    return;
  }
  if (mean <= tolerance.mean) return;
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
  if (tolerance.quanta > 0 && holds_narrow_quanta(expected.dtype())) {
    compare_floats(
        count, [&](int64_t i) { return static_cast<double>(actual.element_as_int64(i)); },
        [&](int64_t i) { return static_cast<double>(expected.element_as_int64(i)); },
        Tolerance{.absolute = tolerance.quanta, .mean = tolerance.mean}, difference);
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
