// Schedules of what lies where indices say: updates that write there (ScatterElements, ScatterND),
// and stages that read there (GatherElements).
#pragma once

#include <optional>

#include "tensor_program/program.h"

namespace collage::native {

/// Divides what no two points of the update's loops share among threads; those loops run in order.
void schedule_scatter(tensor_program::Program& program, const tensor_program::Stage& stage,
                      size_t update, int threads);

/// Of a stage that gathers along its innermost axis: positions are computed as vectors, a tile at a
/// time, then each element is read by itself. `tasks`: for each thread, as StageSchedule's. False
/// where the stage is none, or its innermost axis is short.
bool schedule_gather(tensor_program::Program& program, const tensor_program::Stage& stage,
                     int threads, std::optional<int64_t> tasks);

}  // namespace collage::native
