// Kernels whose code serves all shapes of a function: it is compiled of a program over symbols,
// whose values it takes as numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/native/codegen/built_kernel.h"
#include "backend/variant.h"
#include "ir/expr.h"
#include "tensor_program/program.h"

namespace collage::native {

/// Starts the names of the variants that are such kernels.
inline constexpr std::string_view kSymbolic = "symbolic";

/// Best guess first: `symbolic` where rows are computed one by one, and for products one for each
/// tile that is worth it for their rows, as `symbolic m6 n1`. None for functions that have no such
/// kernel.
std::vector<Variant> symbolic_variants(const Function& flat, int threads);

/// What the variant's code is compiled of, with the values of the function's shapes: functions that
/// differ in shapes alone have one text but for these. Or why it has none.
Result<tensor_program::Program> program_over_symbols(const Function& flat, std::string_view variant,
                                                     int threads);

/// May throw Halide's exceptions.
Result<BuiltKernel> build_symbolic(const Function& flat, std::string_view variant, int threads);

}  // namespace collage::native
