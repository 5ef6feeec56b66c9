// The cheapest cover as an integer program, solved by CBC: the oracle for problems too large to
// enumerate. It is made from the search's input alone.
//
//   x[v]         variant v of some candidate is used
//   y[g, a, b]   tensor g is converted from form a to form b; all plain views of it are one form
//
//   each operator is in exactly one used variant
//   who reads a form in a place where one variant must be chosen needs it given or converted; so do
//   results in their plain form
//
// Conversions that feed each other in a ring, and kernels that wait for each other, are cut off
// when they turn up in a solution, and the program is solved again.
#pragma once

#include <limits>

#include "base/result.h"
#include "search/problem.h"

namespace collage::testing {

struct IntegerOptimum {
  double seconds = 0;
  size_t variables = 0, rows = 0, rounds = 0;
  double solving_seconds = 0;
};

// kUnsupported: there is no cover, or CBC did not prove an optimum in that time. What is dearer
// than `known`, the seconds of a cover at hand, is not looked at: that there is nothing cheaper is
// then proven where the bound reaches it.
Result<IntegerOptimum> solve_integer_program(
    const SearchProblem& problem, double max_seconds,
    double known = std::numeric_limits<double>::infinity());

}  // namespace collage::testing
