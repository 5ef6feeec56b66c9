// Reads the weights of the next tile while the multiply-adds of this one run.
//
// Where a tile of weights serves several passes (row tiles of a product, pixel tiles of a
// convolution) only its first pass reads memory and the others leave the memory idle, so that a
// kernel takes the sum of both times. This lowering pass spreads prefetches of the tile that
// follows evenly over all passes:
//
//   for tile:                        // steps through the weights
//     for pass:                      // uses them again
//       for k:                       // reads them
//         prefetch weights[tile + 1][(pass, k) of all]      <- added
//         ...
//
// Tiles are found in the loops themselves: the innermost loop that moves on to other weights around
// one that does not. Where there is none nothing is added.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <string>

namespace collage::native {

/// Weights of fewer bytes stay in a core's cache from one run to the next.
inline constexpr int64_t kLeastBytesAhead = 256 << 10;

/// Has the pipeline read the buffer of that name ahead. Loops that share weights must run
/// through one tile contiguous in memory after the other.
void read_ahead(Halide::Pipeline& pipeline, const std::string& buffer);

}  // namespace collage::native
