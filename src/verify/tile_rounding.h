// Errors of convolutions that are computed in tiles of outputs (Winograd): every output of a tile
// errs by the same part of the patch of inputs that its tile reads, whether or not its own taps
// reach it.
#pragma once

#include <span>

#include "backend/rounding.h"
#include "base/result.h"
#include "ir/expr.h"

namespace collage {

// Returns the side of the tiles of such a rounding: 2 or 4; 0 for others.
int tile_side(const Rounding& rounding);

// Returns whether Winograd can compute it: a convolution of 3x3 taps, in one slice or several, with
// stride 1.
bool can_be_tiled(const CallNode& call);

// Returns, for each output element of such a convolution, in float64: the root of the sum over
// channels (and slices) of the square of the largest magnitude in its tile's patch times the
// filter's taps. Tiles are of `side` x `side` outputs, from the first on; a patch with a value that
// is not finite gives a result that is not.
Result<Tensor> sizes_of_tiles(const CallNode& call, std::span<const Tensor> arguments, int side);

}  // namespace collage
