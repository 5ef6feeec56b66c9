// A function as it is computed on a device: products are brought to the forms that threads read
// well, side by side along the innermost dimension.
//
//   dense(a, B)                  matmul(a, transposed B)
//   matmul(a, b, transpose_b)    matmul(a, transpose(b)); of a constant, it is transposed now
//   convolution with padding     convolution(pad(data))
//   attention(q, k, v, mask)     matmul(softmax(matmul(q, transposed k) * scale + mask), v)
#pragma once

#include "ir/expr.h"

namespace collage::opencl {

Result<Function> prepared(const Function& flat);

}  // namespace collage::opencl
