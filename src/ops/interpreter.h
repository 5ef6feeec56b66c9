// The interpreter: runs a function of registered operators with their reference kernels, one call
// after the other. It is the oracle that every other backend is checked against, and what constant
// folding uses. Any function is accepted: tuples, shared nodes, calls of function literals.
//
//   std::vector<Tensor> results = TRY(interpret(function, inputs));
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"

namespace collage {

// Runs a function. `inputs` has one tensor for each leaf of the parameters, in order, with their
// shapes and dtypes. Returns one tensor for each leaf of the result. Intermediate results are freed
// after their last use. A result may share storage with an input or a constant (a view, a parameter
// returned as it is).
Result<std::vector<Tensor>> interpret(const Function& function, std::span<const Tensor> inputs);

// Does the same, but `evaluate` computes calls of the function's own body, and of the functions
// that its control flow runs (ops/control.h).
using EvaluateCall =
    std::function<Result<std::vector<Tensor>>(const CallNode& call, std::span<const Tensor>)>;
Result<std::vector<Tensor>> interpret(const Function& function, std::span<const Tensor> inputs,
                                      const EvaluateCall& evaluate);

// Evaluates one call of an operator or a function literal on the leaves of its arguments.
// Returns what a call gives whatever its arguments hold, as shape_of does; none of other operators.
std::optional<Tensor> value_by_types(const CallNode& call);

Result<std::vector<Tensor>> evaluate_call(const CallNode& call,
                                          std::span<const Tensor> flat_inputs);

}  // namespace collage
