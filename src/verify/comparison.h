// Compares outputs of a kernel or a program with the reference: each element by a scale of its own,
// and all of them by the root of their mean squared error. NaN and infinity must stand in the same
// places; integers must be equal, unless the tolerance allows what roundings change.
// rounding_error.h determines what a kernel may err by.
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
  // Allowed in addition: this many times what roundings move that element by (rounding_error.h);
  // null: nothing. If that is infinite, the element may be anything, NaN too.
  std::shared_ptr<const std::vector<double>> moved = nullptr;
  double of_moved = 0;
  double absolute = 0;  // … if that is less
  // Allowed |a-b| of integers of 8 and 16 bits, if that is more than what roundings move them by;
  // for other integers `moved` alone applies. Quantising rounds to a neighbour if two sums lie on
  // either side of the middle.
  double steps = 0;
  // Limit of the above together, as a part of that scale and of |b|.
  double most = std::numeric_limits<double>::infinity();
  // Allowed root mean square of all errors, each as a part of what its element may err by: detects
  // many small errors that no single element shows.
  double mean = std::numeric_limits<double>::infinity();
  // An element may err by more than a quarter of what it may only where others err too: so much, in
  // squares, as if this share of all elements erred by as much as it does.
  double share = 0;
  // A number may stand for NaN; such elements are counted (Difference::lost_nan).
  bool may_lose_nan = false;
  // NaN may stand for any number; such elements are counted (Difference::spread_nan).
  bool may_spread_nan = false;
};

// The change that a conversion may make: none, or what the smaller of two float types cannot hold.
Tolerance conversion_tolerance(DType from, DType to);
// The tolerance of a compiled model against another runtime: |a-b| <= 1e-4 s + 1e-3 |b|, where s is
// the largest of the values like b; with a larger error allowed, |a-b| <= max_error s.
Tolerance model_tolerance(double max_error = 0);
// The tolerance of a program that computes in float32 (passes/widen_halves.h) against a model that
// rounds every tensor to that half-width type: |a-b| <= 1e-2 s for float16, 8e-2 for bfloat16,
// twenty roundings each, and a quarter of that in root mean square; plus `max_error` s.
Tolerance half_tolerance(DType half, double max_error = 0);
// The tolerance between two runtimes' results of a quantised model: |a-b| <= 8e-2 s, for integers
// of 8 bits the same part of their range, half of that in root mean square; plus `max_error` s. A
// quarter of that where fewer than one element in 256 err: what a neighbour in the middle of a
// model changes is spread, one wrong logit is not.
Tolerance quantised_tolerance(double max_error = 0);
// The tolerance for values that are kept in that type, where neighbours of a half-width type may be
// further apart than the values they were rounded from.
Tolerance kept_as(Tolerance tolerance, DType dtype);

struct Difference {
  double max_abs = 0;  // largest |a-b|
  double max_rel = 0;  // largest |a-b| / s, s the largest of the values like b
  double rms_rel = 0;  // root mean square of a-b, as a part of that of b
  bool within = true;
  bool excused = false;  // … though some are beyond the tolerance (ReferenceCheck::compare)
  std::string reason;    // of the first element out of tolerance; empty when within
  // The element with the largest error relative to what it is allowed: position in row-major order,
  // values, and that ratio (infinity if only one value is finite). Floats alone.
  int64_t worst_element = 0;
  double worst_actual = 0, worst_expected = 0, worst_of_allowed = 0;
  double mean_of_allowed = 0;     // the root mean square of errors, as a part of Tolerance::mean
  int64_t lost_nan = 0;           // elements that should be NaN and are not, where they may
  int64_t spread_nan = 0;         // NaN that should be numbers, where they may
  int64_t wrong = 0, judged = 0;  // elements out of tolerance, excused or not, and all
};

// Takes the difference for one within what is allowed where few of many elements exceed that, a
// little: the largest error of millions is beyond that of thousands.
void excuse_unlucky(Difference& difference);

// Returns why agreement with these values proves nothing: "almost all 0", "all NaN", "all the
// same"; empty if it does prove something.
std::string proves_nothing(const Tensor& expected);

// Both tensors are plain, of equal shape and dtype.
Difference compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance);

}  // namespace collage
