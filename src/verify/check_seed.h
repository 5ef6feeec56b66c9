// The seed of the inputs that kernels and programs are checked on: drawn anew for every process
// that compiles, so that none can be right on these inputs alone, and told wherever a check fails.
// COLLAGE_CHECK_SEED repeats one.
#pragma once

#include <cstdint>

namespace collage {

// The same throughout a process.
uint32_t check_seed();

}  // namespace collage
