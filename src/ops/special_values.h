// Promises of elementwise operators on real numbers at special arguments: one table, from which
// every backend's tests are generated (tests/backend/targets/special_values_test.cc).
//
// An operator's value is its reference kernel's: the definition computed in double precision and
// rounded once. Every kernel in use promises that
//
//   - where the value is finite, the kernel's is finite and within `relative` of it, or within
//     `absolute`. A value below 2^-126, or a factor below it on the way, may be taken for zero;
//   - where the value is infinite, the kernel's is the same infinity;
//   - where the value is NaN, the kernel's is NaN, unless the variant states that it may lose it
//     (Variant::loses_nan). Such variants are left out under `--accuracy strict`.
//
// Arguments are any numbers: zeros of either sign, subnormal ones, the largest, infinities, NaN.
// The sign of a zero is promised where it decides another result: as a divisor, and as an argument
// of atan2-like functions, of which there are none.
//
// A backend that cannot keep this for an operator does not take the operator.
#pragma once

#include <string>
#include <vector>

#include "ir/attrs.h"

namespace collage {

struct Promise {
  std::string op;
  Attrs attrs = {};
  // Arguments near which kernels may change their algorithm, beside those of all operators.
  std::vector<float> around = {};
  double relative = 1e-6;
  double absolute = 0x1p-125;  // where the definition subtracts numbers that are nearly equal

  // For two arguments: a right one that is smaller, but not zero, may be taken for zero.
  double least_right = 0;
  bool signs_of_zero = true;  // false: the sign of a zero among the arguments may be lost
};

// Promises of operators of one tensor, and of two (comparisons included).
const std::vector<Promise>& unary_promises();
const std::vector<Promise>& binary_promises();

}  // namespace collage
