// Collapsing dimensions: a function of element-wise calls (around at most one 1x1 convolution or
// product with a constant matrix, or with reductions) is rewritten over fewer, longer dimensions,
// where every tensor is whole or broadcast along a run of them alike. The buffers are the same
// bytes, so kernels of the result serve the original function.
//
//   add((1, 64, 56, 56), (1, 64, 1, 1))  becomes  add((64, 3136), (64, 1))
//   sum((1000, 50, 20, 10), axis=[0])    becomes  sum((1000, 10000), axis=[0])
#pragma once

#include "ir/expr.h"

namespace collage::tensor_program {

/// Parameters keep their order. Dimensions before `first` are left alone. The function itself where
/// nothing collapses.
Function collapse_dims(const Function& function, int64_t first);

}  // namespace collage::tensor_program
