// What convolutions that are computed in tiles of outputs (Winograd) err by: every output of a tile
// by the same part of what the patch of inputs holds that its tile reads, whichever of them its own
// taps reach.
#pragma once

#include <span>

#include "backend/rounding.h"
#include "base/result.h"
#include "ir/expr.h"

namespace collage {

// The side of the tiles of what rounds so: 2 or 4; 0 where sums are plain ones.
int tile_side(const Rounding& rounding);

// Convolutions of 3x3 taps, in one slice or several, with stride 1, which Winograd can compute.
bool can_be_tiled(const CallNode& call);

// Of each output element of such a convolution, in float64: the root of the sum over channels (and
// slices) of the square of the largest magnitude in its tile's patch times the filter's taps.
// Tiles are of `side` x `side` outputs, from the first on; where a patch holds what is not finite,
// the result is not.
Result<Tensor> sizes_of_tiles(const CallNode& call, std::span<const Tensor> arguments, int side);

}  // namespace collage
