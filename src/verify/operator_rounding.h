// The model of rounding of one operator in its own type, with which rounding_error.h evaluates
// functions. Errors are root mean squares.
//
// A rounding to nearest errs by at most u and by 0.41 u on average. Sums of K terms are taken as
// made one term after the other, which is how the inner loops of most libraries add: each partial
// sum is rounded. For terms of either sign the error grows with K while the sum grows with sqrt(K);
// for terms of one sign with K^1.5 and K. Relative to the terms both are sqrt(K) roundings.
#pragma once

#include "ir/expr.h"
#include "tensor_program/term.h"

namespace collage {

// Returns the largest relative error of rounding to that type: 2^-24 for float32.
double unit_roundoff(DType dtype);
// Returns 0.41 of that: the root mean square over all mantissas.
double rms_roundoff(double unit);

struct OperatorRounding {
  double operands = 0;  // relative to each element of what is summed (see reads_all)
  double results = 0;   // relative to each element of the result
  double absolute = 0;  // besides, where the definition subtracts numbers that are nearly equal
};
// Returns zero for operators that only move, choose or compare.
OperatorRounding operator_rounding(const CallNode& call);

// Does so for one operation of a tensor program: relative to its result, which is of that type.
double operation_rounding(tensor_program::TermOp op, DType dtype);

// Returns the most terms that an element of the result adds up.
double summands(const CallNode& call);
// Returns whether it is a convolution, matrix product or attention: they multiply two tensors and
// add up.
bool multiplies(const CallNode& call);
// Returns whether all operands have errors of their own: elementwise and recurrent operators,
// those that read between pixels, and attention. In a
// product or a norm, noise on the first operand stands for the rounding of all sums.
bool reads_all(const CallNode& call);

// Whether a small change of the operands can make a large one of the result.
// kSteps: constant between its jumps. Tensor programs may jump anywhere.
enum class Continuity { kContinuous, kJumps, kSteps };
Continuity continuity(const CallNode& call);

}  // namespace collage
