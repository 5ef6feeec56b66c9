// The seed of the inputs that kernels and programs are checked on: drawn anew in every process that
// compiles, so that no kernel can be right on fixed inputs alone, and stated by each failed check.
// COLLAGE_CHECK_SEED repeats one.
#pragma once

#include <cstdint>

namespace collage {

// Returns the same seed throughout a process.
uint32_t check_seed();

}  // namespace collage
