// Lowering: from a function and one of its variants to a kernel, step by step.
//
//   function   flat, with the products that the variant computes: of real numbers, or of integers
//   program    its stages (tensor_program/emit/emit.h), or what the caller of a program wrote
//   planned    the stages that are kept, and where sums are computed (tensor_program/stage_plan.h)
//   scheduled  with the variant's schedule (stages/stage_schedule.h, symbolic/symbolic_schedule.h)
//   halide     the loops, behind Halide's lowering and the lowering of codegen/built_kernel.h
//   assembly   of the object that becomes the kernel's library (codegen/code_cache.h)
//
// The variant's row of kernel_table.h builds what stands between `function` and `halide`; templates
// have no program. COLLAGE_DUMP=dir:regex writes the steps (codegen/kernel_dump.h).
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/native/codegen/built_kernel.h"

namespace collage::native {

/// `version`: of the backend, for the cache of compiled code.
Result<std::unique_ptr<Kernel>> lower_kernel(const Function& function, const Variant& variant,
                                             const std::string& version,
                                             const CompileOptions& options);

/// The last steps, of a kernel whose key tells it from all others. `strict`: infinities and NaN are
/// numbers like others.
Result<std::unique_ptr<Kernel>> loaded_kernel(const BuiltKernel& built, const std::string& version,
                                              const CompileOptions& options, bool strict = false);

}  // namespace collage::native
