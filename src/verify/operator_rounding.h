// How much one operator may err in its own type: the model of rounding that rounding_error.h
// evaluates functions with. Errors are root mean squares.
//
// A rounding to nearest errs by at most u and by 0.41 u on average. Sums of K terms are taken as
// made one term after the other, which is how the inner loops of most libraries add: each partial
// sum is rounded. Of terms of either sign the error grows with K while the sum grows with sqrt(K);
// of terms of one sign with K^1.5 and K. Relative to the terms both are sqrt(K) roundings.
#pragma once

#include "ir/expr.h"
#include "tensor_program/term.h"

namespace collage {

// The largest relative error of rounding to that type: 2^-24 for float32.
double unit_roundoff(DType dtype);
// 0.41 of that: the root mean square over all mantissas.
double rms_roundoff(double unit);

struct OperatorRounding {
  double operands = 0;  // relative to each element of what is summed (see reads_all)
  double results = 0;   // relative to each element of the result
  double absolute = 0;  // besides, where the definition subtracts numbers that are nearly equal
};
// Zero for operators that only move, choose or compare.
OperatorRounding operator_rounding(const CallNode& call);

// The same of one operation of a tensor program: relative to its result, which is of that type.
double operation_rounding(tensor_program::TermOp op, DType dtype);

// How many terms an element of the result adds up, at most.
double summands(const CallNode& call);
// Convolutions, matrix products and attention: they multiply two tensors and add up.
bool multiplies(const CallNode& call);
// Operators whose operands all have errors of their own: elementwise ones and attention. Of a
// product or a norm, noise on the first operand stands for the rounding of all sums.
bool reads_all(const CallNode& call);

// Where a small change of the operands can make a large one of the result.
// kSteps: constant between its jumps. Tensor programs may jump anywhere.
enum class Continuity { kContinuous, kJumps, kSteps };
Continuity continuity(const CallNode& call);

}  // namespace collage
