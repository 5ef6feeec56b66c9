// Constant factors of sums, laid out as the threads of a processor read them: in order, as many
// side by side as a tile has lanes.
//
//   matrix [k, n]                [n / lanes, k, n % lanes]            (Tile::packed)
//   weights [o, i, y, x]         [o / lanes, i, y, x, o % lanes]      (Tile::across)
#pragma once

#include <vector>

#include "backend/opencl/gpu_schedule.h"

namespace collage::opencl {

/// The call where it is a sum that threads compute by tiles; else null.
const CallNode* sum_of(const Expr& node);
/// Whether it is a convolution whose channels are lanes of whole tiles.
bool has_whole_lanes(const CallNode& sum, int64_t lanes);
/// Binds the constants of a function, given in order, that the tile wants packed.
void pack_constants(tensor_program::Emitter& emitter, const std::vector<Expr>& order,
                    const Tile& tile);

}  // namespace collage::opencl
