// Kernels that are tensor programs: emitted or given, planned, scheduled and translated.
#pragma once

#include "backend/native/kernel_table.h"

namespace collage::native {

/// By the schedule of stages that the request says (stages/stage_choices.h).
Result<BuiltKernel> stage_kernel(const Request& request);
/// The same with products of integers (integers/integer_products.h).
Result<BuiltKernel> integer_kernel(const Request& request);
/// A user's program alone, by the schedule that it brings, or a plain one.
Result<BuiltKernel> program_kernel(const Request& request);
/// Over symbols (symbolic/symbolic_kernel.h).
Result<BuiltKernel> symbolic_kernel(const Request& request);

}  // namespace collage::native
