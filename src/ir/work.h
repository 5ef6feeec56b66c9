// How much work a call of an operator, or a function, is.
#pragma once

#include "ir/expr.h"

namespace collage {

// Of all tensors that the call gives.
double result_elements(const CallNode& call);

// By the operator's own estimate (Op::flops); without one, an operation for each element of the
// result.
double call_flops(const CallNode& call);
double call_flops(const Expr& expr);  // 0 where it is no call of an operator

double type_bytes(const Type& type);  // of all tensors in it

double function_flops(const Function& function);
double function_bytes(const Function& function);  // parameters, constants and results
double constant_bytes(const Function& function);

}  // namespace collage
