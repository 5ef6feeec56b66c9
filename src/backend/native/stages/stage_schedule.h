// Writing the schedule of a program of stages: what stage_choices.h names, as the steps of
// tensor_program/program.h.
//
// Sums are computed in tiles of rows and columns that fill the registers. A thread's loops never
// run past an array (called_program.h guards them).
#pragma once

#include "backend/native/stages/stage_choices.h"
#include "tensor_program/program.h"

namespace collage::native {

/// The program of the plan, which keeps what the schedule says, with that schedule.
Result<tensor_program::Program> with_schedule(tensor_program::StagePlan plan,
                                              const StageSchedule& schedule, int threads);

}  // namespace collage::native
