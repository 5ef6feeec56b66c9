// The kernel of a contraction: its image copied into parts, then blocks of tiles.
#pragma once

#include <memory>

#include "backend/contraction/contraction.h"
#include "backend/contraction/micro_kernel.h"
#include "backend/contraction/schedule.h"
#include "runtime/kernel.h"

namespace collage::contraction {

/// `micro_kernel` outlives it.
Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule,
                                                        const MicroKernel& micro_kernel,
                                                        int threads);

}  // namespace collage::contraction
