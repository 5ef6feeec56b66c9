// Stages that read across the rows of an array, as transposes and conversions of layouts do: in
// square tiles, each of which is read along the rows first and stays in registers.
//
//   result Y[i, j] = X[j, i];
//
//   stage Y_rows0[j, i] = X[j, i];           16 rows of 16, where Y computes 16 rows of 16
//   result Y[i, j] = Y_rows0[j, i];          moved within vectors
#pragma once

#include <optional>
#include <string>

#include "tensor_program/program.h"

namespace collage::native {

/// Has the stage, of no sums and no updates, do so, and writes the schedule of it and its copies;
/// whether there was anything to gain. `tasks`: for each thread (0: none, nothing: as many as are
/// worth it).
bool schedule_transposed_tiles(tensor_program::Program& program, const std::string& stage,
                               int threads, std::optional<int64_t> tasks);

}  // namespace collage::native
