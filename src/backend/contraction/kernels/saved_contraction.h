// Contractions as JSON, for kernels that are saved. Packed weights are the kernels' constants, one
// a branch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/contraction/kernels/contraction.h"
#include "backend/contraction/kernels/micro_kernel.h"
#include "backend/contraction/kernels/packed_operand.h"
#include "backend/contraction/kernels/schedule.h"
#include "runtime/kernel.h"

namespace collage::contraction {

struct SavedContraction {
  Contraction contraction;  ///< whose branches are without weights
  Schedule schedule;
  std::vector<PackedOperand> weights;  ///< of each branch
};

SavedKernel save_contraction(const char* loader, const Contraction& contraction,
                             const Schedule& schedule, std::span<const PackedOperand> weights);
/// kBadModel: it describes nothing that the micro-kernel can compute.
Result<SavedContraction> read_saved_contraction(const SavedKernel& saved,
                                                const MicroKernel& micro_kernel);

/// Loads a saved kernel of the loader MicroKernel::loader. `micro_kernel` outlives it.
Result<std::shared_ptr<Kernel>> load_contraction_kernel(const SavedKernel& saved,
                                                        const MicroKernel& micro_kernel,
                                                        int threads);

}  // namespace collage::contraction
