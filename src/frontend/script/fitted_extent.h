// Finds the term over symbols that some extent is, from its values at points: what a type rule of
// numbers makes of a dimension, told for all sizes.
//
//   n = 4 gives 8, n = 6 gives 12, …      2 * n
//   n = 5 gives 3, n = 6 gives 3, …       (n + 1) / 2
//
// Found are polynomials of degree two, divided by a number (of the points' most, or a power of two)
// and rounded down, of degree one where there are many symbols; and what grows with one
// symbol up to a number, min(2 * n, 512).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor_program/extent.h"

namespace collage::tensor_program {

/// Points to look at: the first `count_of_grid` lie on a grid and decide on factors; the others
/// beside it, at all distances that a divisor leaves, decide on what rounds, and check, as do some
/// from 1 to some thousands.
struct ExtentPoints {
  static ExtentPoints of(const std::vector<std::string>& symbols, int64_t step,
                         int64_t most_divisor);

  std::vector<std::string> symbols;
  int64_t step = 1, most_divisor = 1;  // of the grid; of divisions that can be found
  bool is_linear() const { return symbols.size() > 8; }  // so many: products take a point a pair
  std::vector<Symbols> points;
  size_t count_of_grid = 1;
};

/// `values`: at each point; none where there is no such value, which none of the grid may be.
/// Returns the term as text; none: no such polynomial has these values.
std::optional<std::string> fitted_extent(const ExtentPoints& at,
                                         std::span<const std::optional<int64_t>> values);

}  // namespace collage::tensor_program
