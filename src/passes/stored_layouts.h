// Takes out layouts that a called tensor program stores and others read, if the readers show that
// it helps: a step of lift_layouts.
//
//  - The result of a program is a layout of its last stage but one, and every reader undoes it: the
//    layout becomes a call of its own, which cancels with theirs.
//  - Two programs or more store the same layout of one tensor (a stage that is scheduled
//    compute_root, or that an external function reads): it becomes one call before them.
#pragma once

#include "ir/expr.h"

namespace collage {

// Returns the same pointer if there are none.
Result<Function> take_out_stored_layouts(const Function& function);

}  // namespace collage
