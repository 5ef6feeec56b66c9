// Vectors of 16 numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/contraction/kernels/instructions.h"

namespace collage::contraction {

/// Returns the mask of the first `count` of 16 lanes.
inline __mmask16 mask_of(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1u);
}

}  // namespace collage::contraction
