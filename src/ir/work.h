// The work of a call of an operator, or of a function.
#pragma once

#include "ir/expr.h"

namespace collage {

// Elements of all tensors that the call returns.
double result_elements(const CallNode& call);

// Operations by the operator's own estimate (Op::flops); without one, one for each element of the
// result.
double call_flops(const CallNode& call);
double call_flops(const Expr& expr);  // 0 where it is no call of an operator

double type_bytes(const Type& type);  // of all tensors in it

double function_flops(const Function& function);
double function_bytes(const Function& function);  // parameters, constants and results
double constant_bytes(const Function& function);

}  // namespace collage
