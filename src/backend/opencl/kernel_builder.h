// From a function to a scheduled Halide pipeline for a device: emitted as a tensor program, whose
// sums, statistics and operands of products are stages.
#pragma once

#include "backend/native/codegen/built_kernel.h"
#include "backend/opencl/gpu_schedule.h"
#include "backend/rounding.h"

namespace collage::opencl {

/// Why a call cannot be computed, if so; sees types and attributes only.
Status check_call(const CallNode& call);
/// The same of a flat function.
Status check_function(const Function& flat);
/// The tiles by which it may be computed, best guess first.
Result<std::vector<Tile>> tiles_of(const Function& flat, bool on_cpu);

/// Of exponentials and logarithms whose terms a compiler adds up in another order: up to 1e-5 of
/// the value, ten times what is promised of them (ops/special_values.h).
inline constexpr Rounding kReordered{.sums = 10};
/// Whether it computes any.
Result<bool> holds_exponentials(const Function& flat);

/// May throw Halide's exceptions.
Result<native::BuiltKernel> build_kernel(const Function& flat, const Tile& tile);

}  // namespace collage::opencl
