// How much work a call of an operator is.
#pragma once

#include "ir/expr.h"

namespace collage {

// Of all tensors that the call gives.
double result_elements(const CallNode& call);

// By the operator's own estimate (Op::flops); without one, an operation for each element of the
// result.
double call_flops(const CallNode& call);

}  // namespace collage
