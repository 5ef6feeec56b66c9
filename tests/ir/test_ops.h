// A few operators to build graphs from: ir knows none of its own.
#pragma once

#include <cstdint>

#include "ir/expr.h"

namespace collage {

// test.unary(x; alpha=1, mode="none"), test.add(x, y), test.matmul(x, y) of squares, test.split(x;
// parts) => tuple, test.concat(tuple), test.attrs(x; one attribute of each kind). Every tensor has
// the shape and dtype of x but for split (first axis divided) and concat (first axis summed).
void register_test_ops();

// A function of `size` nodes: calls, tuples, projections, constants of all dtypes and sizes, nested
// function literals; much shared.
Function random_function(uint64_t seed, int size);

}  // namespace collage
