// Places the result of a kernel that updates an input (runtime/updating_kernel.h) where the input
// lies, if nothing reads the input afterwards. Otherwise the kernel copies it.
//
//   %1 = arena                     %1 = arena
//   %2 = arena                     %2 = part of %1
//   update(%1) -> %2               update(%1) -> %2
#pragma once

#include "runtime/plan.h"

namespace collage {

/// Steps are in order; arena offsets are not chosen yet.
void update_in_place(Plan& plan);

}  // namespace collage
