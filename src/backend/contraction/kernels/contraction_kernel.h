// The kernel of a contraction: copies its image into parts, then computes blocks of tiles.
#pragma once

#include <memory>

#include "backend/contraction/kernels/contraction.h"
#include "backend/contraction/kernels/micro_kernel.h"
#include "backend/contraction/kernels/packed_operand.h"
#include "backend/contraction/kernels/schedule.h"
#include "runtime/kernel.h"

namespace collage::contraction {

/// `micro_kernel` outlives it.
Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule,
                                                        const MicroKernel& micro_kernel,
                                                        int threads);
/// Makes the same with packed weights, those of each branch.
Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule,
                                                        const MicroKernel& micro_kernel,
                                                        int threads,
                                                        std::vector<PackedOperand> weights);

}  // namespace collage::contraction
