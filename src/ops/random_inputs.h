// Seeded random tensors for tests, verification and default inputs: the same values on every
// machine and for any number of threads.
#pragma once

#include <collage/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace collage {

// Integers and bools take both ends.
struct ValueRange {
  double low = -1, high = 1;
};

// Uniform values in the range.
Tensor random_tensor(const TensorType& type, uint64_t seed, ValueRange range = {});

// One tensor per leaf of the function's parameters: floats in [-1, 1], bools either, integers in
// [0, 7], unless they reach an operator as indices (take, gather, one_hot, …), possibly through
// operators that move or compute integers: then every value is an index within the smallest extent
// they select from, less what constants add to it on the way. Divisors and sequence lengths are at
// least 1. Quantised integers are of all values of their type, their zero points near its middle,
// scales in [0.01, 0.1].
std::vector<Tensor> random_inputs(const Function& function, uint64_t seed);

// The range from which random_inputs draws for one parameter leaf.
std::vector<ValueRange> input_ranges(const Function& function);

// What operators of `body` demand of integers in it, which they use as indices, divisors or
// lengths, possibly through operators that move or compute integers. None where nobody does.
std::optional<ValueRange> demanded_range(const Expr& integers, const Expr& body);

}  // namespace collage
