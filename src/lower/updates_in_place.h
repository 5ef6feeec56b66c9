// Puts what a kernel makes of an input by updating it (runtime/updating_kernel.h) where the input
// lies, if nothing reads the input afterwards. Elsewhere the kernel copies it.
//
//   %1 = arena                     %1 = arena
//   %2 = arena                     %2 = part of %1
//   update(%1) -> %2               update(%1) -> %2
#pragma once

#include "runtime/plan.h"

namespace collage {

/// Steps are in their order; arena offsets are not chosen yet.
void update_in_place(Plan& plan);

}  // namespace collage
