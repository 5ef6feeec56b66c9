// Schedules of programs in which a user's tensor program is a part: whatever stages they have.
//
//   stages    each stage by itself, divided among threads
//   rows 16   a task computes everything that 16 rows of the result need
//   packed    products read what columns multiply from panels that are copied first
//
// Sums are computed in tiles of rows and columns that fill the registers; how large those are
// follows from the stage. A thread's loops never run past an array (called_program.h guards them).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor_program/program.h"

namespace collage::native {

struct StageSchedule {
  int64_t rows = 0;  ///< of the result, in a task; 0: stage by stage
  bool packed = false;

  std::string to_string() const;
  bool operator==(const StageSchedule&) const = default;
};

/// Those worth measuring for a program without schedule, best guess first.
std::vector<StageSchedule> stage_schedules(const tensor_program::Program& program, int threads);

/// The program with its stages so planned (stage_plan.h) and scheduled.
Result<tensor_program::Program> with_schedule(const tensor_program::Program& program,
                                              const StageSchedule& schedule, int threads);

}  // namespace collage::native
