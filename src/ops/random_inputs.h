// Seeded random tensors for tests, verification and default inputs: the same values on every
// machine and for any number of threads.
#pragma once

#include <collage/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace collage {

// The range of values; integers and bools include both ends.
struct ValueRange {
  double low = -1, high = 1;
};

// Returns uniform values in the range.
Tensor random_tensor(const TensorType& type, uint64_t seed, ValueRange range = {});

// Returns one tensor for each leaf of the function's parameters: floats in [-1, 1], any bools,
// integers in [0, 7]. Integers that reach an operator as indices (take, gather, one_hot, …),
// possibly through operators that move or compute integers, lie within the smallest extent they
// select from, less what constants add to them on the way. Divisors and sequence lengths are at
// least 1. Quantised integers take all values of their type, their zero points lie near its middle,
// scales in [0.01, 0.1].
std::vector<Tensor> random_inputs(const Function& function, uint64_t seed);

// Returns the ranges that random_inputs draws from, one for each parameter leaf.
std::vector<ValueRange> input_ranges(const Function& function);

// Returns the range that operators of `body` require of integers that they use as indices, divisors
// or lengths, possibly through operators that move or compute integers. None if there is no
// requirement.
std::optional<ValueRange> demanded_range(const Expr& integers, const Expr& body);

}  // namespace collage
