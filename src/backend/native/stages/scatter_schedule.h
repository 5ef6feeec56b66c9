// Schedules of updates that write where indices say: ScatterElements, ScatterND.
#pragma once

#include "tensor_program/program.h"

namespace collage::native {

/// Divides what no two points of the update's loops share among threads; those loops run in order.
void schedule_scatter(tensor_program::Program& program, const tensor_program::Stage& stage,
                      size_t update, int threads);

}  // namespace collage::native
