// The kernel of a convolution by Winograd's algorithm (winograd.h), in integers.
#pragma once

#include <memory>

#include "backend/contraction/contraction.h"
#include "backend/contraction/micro_kernel.h"
#include "backend/contraction/schedule.h"
#include "runtime/kernel.h"

namespace collage::contraction {

/// `c`: one that winograd::can_compute. Of the schedule count the form and `by_columns` (the
/// threads share out the result's columns in place of its patches).
Result<std::unique_ptr<Kernel>> make_winograd_kernel(Contraction c, const Schedule& schedule,
                                                     const MicroKernel& micro_kernel, int threads);

}  // namespace collage::contraction
