// Interprets a program: the reference for compiled kernels, used by tests and for folding programs
// of constants. The schedule has no effect.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Returns the results, in order, for values of the program's parameters, in order. Fails if a
/// constant has no values, a stage reads outside an array, or an external function is missing or
/// fails.
Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params);

/// Small random changes of operations' results, the same for the same seed on any number of
/// threads.
struct OperationNoise {
  /// The root mean square of the change, relative to the result of an operation on reals of that
  /// type. A sum or product over an update's axes is one such operation for each of its terms.
  std::function<double(TermOp, DType)> relative;
  uint64_t seed = 0;
};
/// Does the same with noise; external functions' results stay unchanged.
Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params,
                                     const OperationNoise& noise);

}  // namespace collage::tensor_program
