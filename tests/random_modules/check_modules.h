// What must hold of random modules (random_module.h): they are read back from both texts, legal,
// planned as by trying every assignment, and compiled programs give what the interpreter gives.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage::testing {

struct CheckedModules {
  size_t planned = 0, refused = 0;  // by device planning
  size_t copies = 0;                // of modules that were planned with every assignment too
  size_t control = 0, functions = 0, programs = 0, tuples = 0;  // modules that have such
};

// Checks modules of `count` seeds from `first` on. Failures are the calling test's.
CheckedModules check_modules(uint64_t first, size_t count);

}  // namespace collage::testing
