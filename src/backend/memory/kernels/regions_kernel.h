// Copies runs of bytes: a join or a cut of tensors, except regions that are in place already, and
// whole tensors.
#pragma once

#include <memory>
#include <vector>

#include "runtime/kernel.h"

namespace collage::memory {

/// `bytes`: of each place's part.
std::unique_ptr<Kernel> make_regions_kernel(std::vector<InPlace> places, std::vector<size_t> bytes);
/// Copies its one input to its one output.
std::unique_ptr<Kernel> make_copy_kernel(size_t bytes);

}  // namespace collage::memory
