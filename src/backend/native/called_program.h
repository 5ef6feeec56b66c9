// A call of a tensor program as a kernel: the program as it stands, with the schedule it brings or,
// where it brings none, a plain one.
#pragma once

#include <optional>

#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::native {

/// The program of a function that is one such call, its buffers bound to the function's parameters
/// and constants; none where the function is something else.
Result<std::optional<tensor_program::Program>> called_program(const Function& flat);

}  // namespace collage::native
