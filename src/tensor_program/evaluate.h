// What a program computes, by walking over it: the meaning that a compiled kernel must have. For
// tests, and for folding programs of constants; the schedule plays no part.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// The results, in order, for values of the program's parameters, in order. An error where a
/// constant has no values, a stage reads beside an array, or an external function is missing or
/// fails.
Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params);

/// Small random changes of what operations give, the same for the same seed on any number of
/// threads.
struct OperationNoise {
  /// The root mean square of the change, relative to the result of an operation on reals of that
  /// type. A sum or product over an update's axes is one such operation for each of its terms.
  std::function<double(TermOp, DType)> relative;
  uint64_t seed = 0;
};
/// The same with noise; external functions give what they give without.
Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params,
                                     const OperationNoise& noise);

}  // namespace collage::tensor_program
