// Converts the values of a constant, as text lists them, to a tensor.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ir/type.h"
#include "tensor_program/term.h"

namespace collage::tensor_program {

/// Takes one value an element, in row-major order; of the constant `name`.
Result<Tensor> tensor_of(const std::string& name, const TensorType& type,
                         const std::vector<Term>& values);

}  // namespace collage::tensor_program
