// Comparing a kernel's or a program's outputs with the reference: each element by a scale of its
// own, and all of them by the root of their mean squared error. NaN and infinity must stand in the
// same places; integers must be equal, but where the tolerance says that roundings move them.
// What a kernel may err by: rounding_error.h.
#pragma once

#include <collage/tensor.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace collage {

struct Tolerance {
  double of_scale = 0;  // allowed |a-b|, as a part of the largest of elements like b (magnitudes.h)
  double relative = 0;  // … of |b| itself
  // … besides these so many times what roundings move that element by (rounding_error.h), or null.
  // Where that is infinite, the element may be anything, NaN too.
  std::shared_ptr<const std::vector<double>> moved = nullptr;
  double of_moved = 0;
  double absolute = 0;  // … if that is less
  // Allowed |a-b| of integers of 8 and 16 bits, if that is more than so many times what they move
  // by; to others `moved` alone applies. What is quantised rounds to a neighbour where two sums lie
  // on either side of the middle.
  double quanta = 0;
  // No more than this part of that scale and of |b|, all together.
  double most = std::numeric_limits<double>::infinity();
  // Allowed root mean square of all errors, each as a part of what its element may err by: many
  // small errors show here that no element gives away.
  double mean = std::numeric_limits<double>::infinity();
  // What should be NaN may be anything, which is counted (Difference::lost_nan).
  bool may_lose_nan = false;
  // NaN may stand for any number, which is counted (Difference::spread_nan).
  bool may_spread_nan = false;
};

// What a conversion may change: nothing, or what the smaller of two float types cannot hold.
Tolerance conversion_tolerance(DType from, DType to);
// What a whole compiled model must meet against another runtime: |a-b| <= 1e-4 s + 1e-3 |b|, where
// s is the largest of the values like b; where the user allows a larger error, |a-b| <= max_error
// s.
Tolerance model_tolerance(double max_error = 0);
// What a program that computes in float32 (passes/widen_halves.h) may be off from a model that
// rounds every tensor to that half-width type: |a-b| <= 1e-2 s for float16, 8e-2 for bfloat16,
// twenty roundings each, and a quarter of that in root mean square; plus `max_error` s.
Tolerance half_tolerance(DType half, double max_error = 0);
// What two runtimes' results of a quantised model may differ by: |a-b| <= 8e-2 s, of integers of 8
// bits the same part of their range, half of that in root mean square; plus `max_error` s.
Tolerance quantised_tolerance(double max_error = 0);
// The tolerance for values that are kept in that type, where neighbours of a half-width type are
// further apart than what they were rounded from may be.
Tolerance kept_as(Tolerance tolerance, DType dtype);

struct Difference {
  double max_abs = 0;  // largest |a-b|
  double max_rel = 0;  // largest |a-b| / s, s the largest of the values like b
  double rms_rel = 0;  // root mean square of a-b, as a part of that of b
  bool within = true;
  bool excused = false;  // … though some are beyond the tolerance (ReferenceCheck::compare)
  std::string reason;    // of the first element out of tolerance; empty when within
  // The element that errs most for what it is allowed: position in row-major order, values, and the
  // error as a part of the allowed one (infinity where only one of them is finite). Floats alone.
  int64_t worst_element = 0;
  double worst_actual = 0, worst_expected = 0, worst_of_allowed = 0;
  double mean_of_allowed = 0;     // the root mean square of errors, as a part of Tolerance::mean
  int64_t lost_nan = 0;           // elements that should be NaN and are not, where they may
  int64_t spread_nan = 0;         // NaN that should be numbers, where they may
  int64_t wrong = 0, judged = 0;  // elements out of tolerance, excused or not, and all
};

// Why agreement with these values proves nothing: "almost all 0", "all NaN", "all the same"; empty
// where it does prove something.
std::string proves_nothing(const Tensor& expected);

// Both plain, of equal shape and dtype.
Difference compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance);

}  // namespace collage
