// Reductions along an array's innermost dimension, whatever its extent, as vectors compute them:
// over lanes side by side, then over the lanes.
//
//   stage S[i:m] = sum(r:n) A[i, r];
//
// becomes
//
//   stage S_lanes[i:m, lane:32] = sum(r:n / 32) A[i, r * 32 + lane];
//   stage S_vector[i:m, lane:8] = S_lanes[i, lane] + S_lanes[i, lane + 8] + …;
//   update S_vector[i, lane] = sum(r:n % 32 / 8) …           the vectors that are left
//   update S_vector[i, lane] = sum(r:min(n % 8, 1)) …        one more, where some are left still
//   stage S[i:m] = S_vector[i, 0] + S_vector[i, 1] + …;
//   update S[i] = sum(r:n) A[i, r];                          where n is less than 8, else none
//
// The last vector ends where the row does, and what it reads again counts as nothing.
// Sums are pairwise, so that rounding errors stay small.
#pragma once

#include <string>

#include "tensor_program/program.h"

namespace collage::native {

/// Of a stage of one reduction, whose innermost loop is cut into four vectors of `width` lanes.
void split_into_lanes(tensor_program::Program& program, const std::string& stage, int width);

/// The steps for what the reduction became, computed at a loop of `reader`.
void schedule_lanes(tensor_program::Program& program, const std::string& stage, int width,
                    const std::string& reader, const std::string& loop);

}  // namespace collage::native
