// Kernels whose code serves all shapes of a function: it is compiled of a program over symbols,
// whose values it takes as numbers.
#pragma once

#include <string>

#include "backend/native/built_kernel.h"
#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::native {

/// The variant that such a kernel is.
inline const std::string kSymbolic = "symbolic";

/// What the function's code is compiled of, with the values of its shapes: functions that differ in
/// shapes alone have one text but for these. Or why it has none.
Result<tensor_program::Program> program_over_symbols(const Function& flat, int threads);

/// May throw Halide's exceptions.
Result<BuiltKernel> build_symbolic(const Function& flat, int threads);

}  // namespace collage::native
