// The kernel of a contraction: its image copied into parts, then blocks of tiles.
#pragma once

#include <memory>

#include "backend/amx/contraction.h"
#include "backend/amx/schedule.h"
#include "runtime/kernel.h"

namespace collage::amx {

Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule, int threads);

}  // namespace collage::amx
