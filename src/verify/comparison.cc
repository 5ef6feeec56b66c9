#include "verify/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/integers.h"
#include "ops/quantised.h"
#include "verify/magnitudes.h"

namespace collage {

namespace {

// Of one rounding, relative; none of types that hold all that others do.
double rounding_of(DType dtype) {
  return dtype == DType::kBFloat16 ? 0x1p-8 : dtype == DType::kFloat16 ? 0x1p-11 : 0;
}

}  // namespace

Tolerance conversion_tolerance(DType from, DType to) {
  return {.relative = std::max(rounding_of(from), rounding_of(to))};
}

Tolerance model_tolerance(double max_error) {
  return max_error > 0 ? Tolerance{.of_scale = max_error}
                       : Tolerance{.of_scale = 1e-4, .relative = 1e-3};
}

Tolerance half_tolerance(DType half, double max_error) {
  return {.of_scale = (half == DType::kBFloat16 ? 8e-2 : 1e-2) + max_error, .mean = 0.25};
}

Tolerance quantised_tolerance(double max_error) {
  constexpr double kOfScale = 8e-2;
  return {.of_scale = kOfScale + max_error,
          .steps = 256 * (kOfScale + max_error),
          .mean = 0.5,
          .share = 1.0 / 256};
}

Tolerance kept_as(Tolerance tolerance, DType dtype) {
  tolerance.relative += 2 * rounding_of(dtype);
  return tolerance;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double square(double value) { return value * value; }

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

// How far elements are from the reference's; -1: none.
struct Errors {
  double squares = 0;             // of the finite errors, times Allowed::per_unit
  double expected_squares = 0;    // of the reference's finite elements, likewise
  double squares_of_allowed = 0;  // of the finite errors, as parts of what each may be
  int64_t count = 0;              // of these
  double max_abs = 0, max_rel = 0;
  double worst_of_allowed = 0;
  int64_t worst = -1, first_wrong = -1, wrong = 0, judged = 0, lost_nan = 0, spread_nan = 0;

  void add(const Errors& later) {
    squares += later.squares;
    expected_squares += later.expected_squares;
    squares_of_allowed += later.squares_of_allowed;
    count += later.count;
    max_abs = std::max(max_abs, later.max_abs);
    max_rel = std::max(max_rel, later.max_rel);
    wrong += later.wrong;
    lost_nan += later.lost_nan;
    spread_nan += later.spread_nan;
    judged += later.judged;
    if (later.worst_of_allowed > worst_of_allowed) {
      worst_of_allowed = later.worst_of_allowed;
      worst = later.worst;
    }
    if (first_wrong < 0) first_wrong = later.first_wrong;
  }
};

constexpr double kRounding = 0x1p-24;

// Magnitudes below which results may be 0: denormals, and beside ordinary numbers also what is
// halved on the way.
double least_kept(DType dtype, double largest) {
  if (!is_float(dtype)) return 0;
  const double least = dtype == DType::kFloat64 ? std::numeric_limits<double>::min()
                                                : double{std::numeric_limits<float>::min()};
  return largest * kRounding > least ? 2 * least : least;
}

// What each element may be off.
class Allowed {
 public:
  Allowed(const Tensor& expected, const Tolerance& tolerance)
      : tolerance_(tolerance),
        magnitudes_(expected),
        flushed_(least_kept(expected.dtype(), largest())),
        per_unit_(largest() > 0 ? std::ldexp(1.0, std::min(kMostScaled, -std::ilogb(largest())))
                                : 0) {}
  // That errors are said as parts of: what is so small that roundings of it are denormals is
  // nothing.
  double scale(double b) const { return std::max(magnitudes_.scale(b), flushed_ / kRounding); }
  double largest() const { return magnitudes_.largest(); }
  // What sums of squares are added up in: a power of two by which the largest is about 1.
  double per_unit() const { return per_unit_; }
  // `b` is finite, and this element may not be anything.
  double of(int64_t i, double b) const {
    const double size = std::abs(b), own = magnitudes_.scale(b);
    double allowed = tolerance_.of_scale * own + tolerance_.relative * size;
    if (tolerance_.moved != nullptr)
      allowed += tolerance_.of_moved * (*tolerance_.moved)[static_cast<size_t>(i)];
    allowed = std::max(tolerance_.absolute, allowed);
    if (std::isfinite(tolerance_.most)) allowed = std::min(allowed, tolerance_.most * (own + size));
    return std::max(allowed, flushed_);
  }
  bool anything(int64_t i) const {
    return tolerance_.moved != nullptr && std::isinf((*tolerance_.moved)[static_cast<size_t>(i)]);
  }

 private:
  const Tolerance& tolerance_;
  const Magnitudes magnitudes_;
  static constexpr int kMostScaled = 1000;
  const double flushed_;
  const double per_unit_;
};

// Where either is no finite number, or anything may be.
void judge_special(Errors& errors, int64_t i, double a, double b, const Allowed& allowed,
                   const Tolerance& tolerance) {
  if (std::isfinite(b)) errors.expected_squares += square(b * allowed.per_unit());
  if (allowed.anything(i)) return;
  if (tolerance.may_lose_nan && std::isnan(b)) {
    errors.lost_nan += !std::isnan(a);
    return;
  }
  if (tolerance.may_spread_nan && std::isnan(a) && !std::isnan(b)) {
    ++errors.spread_nan;
    return;
  }
  if ((std::isnan(a) && std::isnan(b)) || a == b) return;
  if (errors.worst_of_allowed < kInfinity) {
    errors.worst_of_allowed = kInfinity;
    errors.worst = i;
  }
  ++errors.wrong;
  if (errors.first_wrong < 0) errors.first_wrong = i;
}

template <typename Actual, typename Expected>
Errors judge(int64_t begin, int64_t end, const Actual& actual, const Expected& expected,
             const Allowed& allowed, const Tolerance& tolerance) {
  Errors errors;
  errors.judged = end - begin;
  const double per_unit = allowed.per_unit();
  for (int64_t i = begin; i < end; ++i) {
    const double a = actual(i), b = expected(i), error = std::abs(a - b);
    if (!std::isfinite(error) || allowed.anything(i)) {
      judge_special(errors, i, a, b, allowed, tolerance);
      continue;
    }
    ++errors.count;
    errors.expected_squares += square(b * per_unit);
    if (error == 0) continue;
    errors.squares += square(error * per_unit);
    errors.max_abs = std::max(errors.max_abs, error);
    if (const double scale = allowed.scale(b); error > errors.max_rel * scale)
      errors.max_rel = std::max(errors.max_rel, scale > 0 ? error / scale : error);
    const double limit = allowed.of(i, b);
    const double of_allowed = limit > 0 ? error / limit : kInfinity;
    if (of_allowed > errors.worst_of_allowed) {
      errors.worst_of_allowed = of_allowed;
      errors.worst = i;
    }
    if (limit > 0) errors.squares_of_allowed += square(of_allowed);
    if (error <= limit) continue;
    ++errors.wrong;
    if (errors.first_wrong < 0) errors.first_wrong = i;
  }
  return errors;
}

// `actual` and `expected` give elements by their position.
template <typename Actual, typename Expected>
void compare_numbers(int64_t count, const Actual& actual, const Expected& expected,
                     const Allowed& allowed, const Tolerance& tolerance, Difference& difference) {
  Errors errors;
  for (const Errors& part : of_parts<Errors>(count, [&](int64_t begin, int64_t end) {
         return judge(begin, end, actual, expected, allowed, tolerance);
       }))
    errors.add(part);
  difference.max_abs = errors.max_abs;
  difference.max_rel = errors.max_rel;
  difference.worst_of_allowed = errors.worst_of_allowed;
  difference.wrong = errors.wrong;
  difference.lost_nan = errors.lost_nan;
  difference.spread_nan = errors.spread_nan;
  difference.judged = errors.judged;
  if (errors.worst >= 0) {
    difference.worst_element = errors.worst;
    difference.worst_actual = actual(errors.worst);
    difference.worst_expected = expected(errors.worst);
  }
  if (errors.expected_squares > 0)
    difference.rms_rel = std::sqrt(errors.squares / errors.expected_squares);
  const double number = std::max<double>(1, static_cast<double>(errors.count));
  const double mean = std::sqrt(errors.squares_of_allowed / number);
  // What a few elements say of their mean.
  constexpr double kFewElements = 0.5;
  const double limit = std::hypot(tolerance.mean, kFewElements / std::sqrt(number));
  difference.mean_of_allowed = mean == 0 ? 0 : mean / limit;
  if (const int64_t i = errors.first_wrong; i >= 0) {
    const double a = actual(i), b = expected(i);
    difference.within = false;
    difference.reason = std::isfinite(a) && std::isfinite(b)
                            ? fmt::format("element {}: {:.9g} instead of {:.9g} (allowed {:.3g})",
                                          i, a, b, allowed.of(i, b))
                            : fmt::format("element {}: {} instead of {}", i, a, b);
    return;
  }
  // Of what it may err by, which an element may whatever others do.
  constexpr double kAlone = 0.25;
  const double worst = errors.worst_of_allowed;
  if (worst > kAlone && square(mean) < tolerance.share * square(worst)) {
    difference.reason = fmt::format(
        "element {}: {:.9g} instead of {:.9g}, {:.2g} of what it may err by, where others hardly "
        "err",
        difference.worst_element, difference.worst_actual, difference.worst_expected, worst);
    difference.within = false;
    return;
  }
  if (mean <= limit) return;
  difference.reason = fmt::format(
      "errs by {:.3g} of what each element may in root mean square (allowed {:.3g}), most in "
      "element {}: {:.9g} instead of {:.9g}",
      mean, limit, difference.worst_element, difference.worst_actual, difference.worst_expected);
  difference.within = false;
}

}  // namespace

void excuse_unlucky(Difference& difference) {
  constexpr int64_t kOneIn = 10'000;
  constexpr double kLittle = 1.5;
  if (difference.wrong == 0 || difference.wrong * kOneIn > difference.judged ||
      difference.worst_of_allowed > kLittle || difference.mean_of_allowed > 1)
    return;
  difference.within = true;
  difference.reason.clear();
}

std::string proves_nothing(const Tensor& expected) {
  // Sparse outputs are common; of fewer than one element in twenty too little can be wrong.
  constexpr int64_t kSparse = 20;
  const int64_t count = expected.size();
  if (count == 0) return "";
  int64_t nonzero = 0, nan = 0;
  const bool floats = is_float(expected.dtype());
  bool same = true;
  with_numbers(expected, [&](const auto& number) {
    const double first = number(0);
    for (int64_t i = 0; i < count; ++i) {
      const double value = number(i);
      nan += std::isnan(value);
      nonzero += value != 0 && !std::isnan(value);
      same &= value == first;
    }
  });
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
  const bool real = is_float(expected.dtype());
  if (real || (tolerance.steps > 0 && is_narrow_quantised_type(expected.dtype()))) {
    // Integers have one unit, whatever their size.
    const Tolerance of_integers{.moved = tolerance.moved,
                                .of_moved = tolerance.of_moved,
                                .absolute = tolerance.steps,
                                .mean = tolerance.mean,
                                .share = tolerance.share};
    const Tolerance& own = real ? tolerance : of_integers;
    const Allowed allowed(expected, own);
    with_numbers(actual, expected, [&](const auto& a, const auto& b) {
      compare_numbers(count, a, b, allowed, own, difference);
    });
    return difference;
  }
  if (expected.dtype() == DType::kBool) {
    const uint8_t* bytes = static_cast<const uint8_t*>(actual.raw());
    for (int64_t i = 0; i < count; ++i)
      if (bytes[i] > 1) return fail(fmt::format("element {}: {} is no bool", i, bytes[i]));
  }
  difference.judged = count;
  const auto allowed = [&](int64_t i) {
    return tolerance.moved == nullptr
               ? 0
               : tolerance.of_moved * (*tolerance.moved)[static_cast<size_t>(i)];
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t a = actual.element_as_int64(i), b = expected.element_as_int64(i);
    if (a == b) continue;
    const double error = std::abs(static_cast<double>(a) - static_cast<double>(b));
    difference.max_abs = std::max(difference.max_abs, error);
    if (error > 0 && error <= allowed(i)) continue;
    if (++difference.wrong == 1) fail(fmt::format("element {}: {} instead of {}", i, a, b));
  }
  return difference;
}

}  // namespace collage
