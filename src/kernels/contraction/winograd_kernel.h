// The kernel of a convolution by Winograd's algorithm (winograd.h), in integers.
#pragma once

#include <memory>

#include "kernels/contraction/contraction.h"
#include "kernels/contraction/micro_kernel.h"
#include "kernels/contraction/packed_operand.h"
#include "kernels/contraction/schedule.h"
#include "runtime/kernel.h"

namespace collage::contraction {

/// `c`: one that winograd::can_compute. Of the schedule count the form and `by_columns` (the
/// threads share out the result's columns in place of its patches).
Result<std::unique_ptr<Kernel>> make_winograd_kernel(Contraction c, const Schedule& schedule,
                                                     const MicroKernel& micro_kernel, int threads);
/// The same of weights that are packed, with what `units` says of each place
/// (winograd::Transformed).
Result<std::unique_ptr<Kernel>> make_winograd_kernel(Contraction c, const Schedule& schedule,
                                                     const MicroKernel& micro_kernel, int threads,
                                                     PackedOperand packed,
                                                     const winograd::Numbers& units);

}  // namespace collage::contraction
