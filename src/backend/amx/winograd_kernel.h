// The kernel of a convolution by Winograd's algorithm (winograd.h), in integers.
#pragma once

#include <memory>

#include "backend/amx/contraction.h"
#include "backend/amx/schedule.h"
#include "runtime/kernel.h"

namespace collage::amx {

/// `c`: one that winograd::can_compute. Of the schedule count the form and `by_columns` (the
/// threads share out the result's columns in place of its patches).
Result<std::unique_ptr<Kernel>> make_winograd_kernel(Contraction c, const Schedule& schedule,
                                                     int threads);

}  // namespace collage::amx
