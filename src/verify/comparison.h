// Comparing a kernel's outputs with the reference: every element, and all of them by the root of
// their mean squared error. NaN and infinity must stand in the same places; integers must be equal,
// but for quantised ones where the tolerance says so.
// What a kernel may err by: rounding_error.h.
#pragma once

#include <collage/tensor.h>

#include <limits>
#include <string>

namespace collage {

struct Tolerance {
  double of_rms = 0;      // allowed |a-b|, as a part of the root mean square of b
  double of_largest = 0;  // … of max|b|
  double relative = 0;    // … of |b| itself
  double absolute = 0;    // … besides
  // Allowed root mean square of all a-b: many small errors show here that no element gives away.
  double mean = std::numeric_limits<double>::infinity();
  // Allowed |a-b| of integers of 8 and 16 bits, with the same `mean`. What is quantised rounds to a
  // neighbour where two kernels' sums lie on either side of the middle.
  double quanta = 0;
};

// What a conversion may change: nothing, or what the smaller of two float types cannot hold.
Tolerance conversion_tolerance(DType from, DType to);
// What a whole compiled model must meet against another runtime: |a-b| <= 1e-4 max|b| + 1e-3 |b|;
// where the user allows a larger error, |a-b| <= max_error max|b|.
Tolerance model_tolerance(double max_error = 0);
// What a program that computes in float32 (passes/widen_halves.h) may be off from a model that
// rounds every tensor to that half-width type: |a-b| <= 1e-2 max|b| for float16, 8e-2 for bfloat16,
// twenty roundings each; plus `max_error` max|b|.
Tolerance half_tolerance(DType half, double max_error = 0);
// What a model of quantised tensors may be off, besides what neighbours of its integers make
// (verify/quanta.h): |a-b| <= 8e-2 max|b|, and integers of 8 bits by the same part of their range,
// as half_tolerance allows bfloat16, which has 8 bits too; plus `max_error` max|b|.
Tolerance quantised_tolerance(double max_error = 0);
// The tolerance for values that are kept in that type, where neighbours of a half-width type are
// further apart than what they were rounded from may be.
Tolerance kept_as(Tolerance tolerance, DType dtype);

struct Difference {
  double max_abs = 0;  // largest |a-b|
  double max_rel = 0;  // largest |a-b| / max|b|
  double rms_rel = 0;  // root mean square of a-b, as a part of that of b
  bool within = true;
  std::string reason;  // of the first element out of tolerance; empty when within
  // The element that errs most for what it is allowed: position in row-major order, values, and the
  // error as a part of the allowed one (infinity where only one of them is finite). Floats alone.
  int64_t worst_element = 0;
  double worst_actual = 0, worst_expected = 0, worst_of_allowed = 0;
  double mean_of_allowed = 0;  // root mean square of a-b, as a part of the allowed one
};

// Why agreement with these values proves nothing: "almost all 0", "all NaN", "all the same"; empty
// where it does prove something.
std::string proves_nothing(const Tensor& expected);

// Both plain, of equal shape and dtype.
Difference compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance);

}  // namespace collage
