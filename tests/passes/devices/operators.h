// The operators that cases of device planning hold.
#pragma once

#include <mutex>

#include "ops/placement.h"
#include "ops/registry.h"

namespace collage {

inline void register_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_all_ops();
    register_placement_ops();
  });
}

}  // namespace collage
