// The variants of each row of kernel_table.h: for an anchor the first few schedules of its
// templates, in the layouts that they can read and write; for other groups one loop nest, in the
// plain layout and, where all are images, in the blocked one and, where some are of bytes, with the
// channels last, as libraries have those. Nothing is built to list them.
#pragma once

#include <vector>

#include "backend/native/kernel_table.h"
#include "backend/schedule_space.h"

namespace collage::native {

// Names of rows.
inline constexpr char kProducts[] = "product", kHalfProducts[] = "bfloat16 weights",
                      kAttention[] = "attention", kStages[] = "stages", kDots[] = "dots",
                      kIntegers[] = "integers", kProgram[] = "program", kSymbolic[] = "symbolic";

/// Products of quantised tensors as sums of integers, where this processor has an instruction for
/// them (dot_products.h).
Result<std::vector<Variant>> dot_variants(const Problem& problem);
Result<std::vector<Variant>> convolution_variants(const Problem& problem);
Result<std::vector<Variant>> product_variants(const Problem& problem);
Result<std::vector<Variant>> attention_variants(const Problem& problem);
/// Of functions without an anchor.
Result<std::vector<Variant>> stage_variants(const Problem& problem);
/// Products of few rows with constant weights in bfloat16, which halves the bytes that take the
/// time.
Result<std::vector<Variant>> half_product_variants(const Problem& problem);
/// Products with constant weights as integer_products.h has them.
Result<std::vector<Variant>> integer_variants(const Problem& problem);
Result<std::vector<Variant>> variants_over_symbols(const Problem& problem);

/// The schedules of a flat function that has no template (stage_choices.h).
Result<ScheduleSpace> kernel_schedules(const Function& function, int threads);

}  // namespace collage::native
