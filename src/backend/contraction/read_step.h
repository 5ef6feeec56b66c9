// Reads calls as steps after a product or convolution (backend/contraction/kernels/epilogue.h).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "backend/contraction/kernels/epilogue.h"
#include "ir/expr.h"

namespace collage::contraction {

/// Returns what the call does to its argument `position`, a tensor whose channels lie along `axis`;
/// none if it is no step.
std::optional<Step> read_step(const CallNode& call, size_t position, size_t axis);

/// Merges steps to fewer ones.
std::vector<Step> merged(std::vector<Step> steps);

}  // namespace collage::contraction
