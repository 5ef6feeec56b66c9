// The ways native offers to compute a function: for an anchor the first few schedules of its
// templates, in the layouts that they can read and write; for other groups one loop nest, in the
// plain layout and, where all are images, in the blocked one and, where some are of bytes, with the
// channels last, as libraries have those. Nothing is built to list them.
#pragma once

#include <vector>

#include "backend/schedule_space.h"
#include "backend/variant.h"
#include "base/result.h"
#include "ir/expr.h"

namespace collage::native {

/// The ways to compute the function, best guess first, at most about four.
Result<std::vector<Variant>> kernel_variants(const Function& function, int threads);

/// More ways to compute a flat function with products of quantised tensors: as sums of integers,
/// where this processor has an instruction for them (dot_products.h). None where it has no such
/// products.
std::vector<Variant> dot_variants(const Function& flat, int threads);

/// The function as the variant computes it: flat, and with products of real numbers in place of
/// those of quantised tensors (real_products.h) unless it is one of `dot_variants`.
Result<Function> flattened_for(const Function& function, const Variant& variant);

/// The schedules of what has no template (stage_choices.h).
Result<ScheduleSpace> kernel_schedules(const Function& function, int threads);

/// More ways for products with constant weights: of few rows with weights in bfloat16, which halves
/// the bytes that take the time, and, where `integers`, as integer_products.h has them.
Result<std::vector<Variant>> lowered_kernel_variants(const Function& function, int threads,
                                                     bool integers);

}  // namespace collage::native
