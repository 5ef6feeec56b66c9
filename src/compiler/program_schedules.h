// Programs in the form that tuning found: the schedule of a kernel's variant becomes a schedule
// that the program brings, and what it stores of weights becomes the weights' layout.
#pragma once

#include "ir/module.h"

namespace collage {

// Returns the module where kernels that are one call of a tensor program and state a variant of
// their target's are calls of the program with that schedule, variant "program", where the target
// can say it so (backend/program_scheduler.h):
//
//   fn (%p: …, Target="native", Variant="rows 8 packed(float32)->(float32)") { @f(%p, weights) }
//   fn (%p: …, Target="native", Variant="program(float32)->(float32)") { @f(%p, weights in panels)
//   }
Result<Module> with_program_schedules(const Module& module, int threads);

}  // namespace collage
