// What a program computes, by walking over it: the meaning that a compiled kernel must have. For
// tests, and for folding programs of constants; the schedule plays no part.
#pragma once

#include <span>
#include <vector>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// The results, in order, for values of the program's parameters, in order. An error where a
/// constant has no values, a stage reads beside an array, or an external function is missing or
/// fails.
Result<std::vector<Tensor>> evaluate(const Program& program, std::span<const Tensor> params);

}  // namespace collage::tensor_program
