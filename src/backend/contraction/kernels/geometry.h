// How a contraction becomes products of tiles.
//
// The image is copied with its padding, cut into parts of bfloat16, so that one row of an operand
// tile is 32 channels of one pixel and 16 neighbouring rows are 16 neighbouring pixels:
//
//   copy[block of 32 channels][position][part][32]
//
// Positions number the padded pixels: (image, depth, height, width), row-major. A stride s
// makes s phases of each dimension, one for each remainder, so that the pixels one tap reads for
// neighbouring results are neighbours too. The result's pixels have positions of the same pitch:
// a tap of the result at position p reads position p + ahead of its phase. Positions between rows
// of the result are computed along and dropped. Where the result is finer than the image, each
// position is a pixel of every pass (taps.h), and only these write to places of their own.
#pragma once

#include "backend/contraction/kernels/contraction.h"
#include "backend/contraction/kernels/work_queue.h"

namespace collage::contraction {

/// What a tap reads for a result at position p: position p + ahead of a phase.
struct TapReach {
  int64_t phase, ahead;
};

struct PassGeometry {
  std::vector<TapReach> taps;  ///< as the pass lists them
  /// The pixel of the batch for each row of each tile, or -1.
  std::vector<int32_t> tile_pixels;
};

struct Geometry {
  Spatial low{0, 0, 0};  ///< the image's pixel at position 0 of phase 0
  std::vector<Spatial> phases;
  Spatial extent{1, 1, 1};  ///< positions of one phase of one image, per dimension
  int64_t phase_positions = 0;
  int64_t furthest = 0;                 ///< of the taps' ahead
  std::vector<int64_t> tile_positions;  ///< where each tile begins (in phase 0)
  std::vector<PassGeometry> passes;

  int64_t tiles() const { return static_cast<int64_t>(tile_positions.size()); }
};

Geometry plan_geometry(const Extents& extents);

/// Returns, for each row of a pass' tiles, the element at which its channels begin in a result of
/// that many channels, or -1.
std::vector<int32_t> row_offsets(const Extents& extents, const PassGeometry& pass,
                                 int64_t out_channels);

/// Returns the number of blocks of 32 input channels.
int64_t depth_blocks(const Extents& extents);
/// Returns the bytes of a copy of that many positions.
int64_t copy_bytes(const Extents& extents, int64_t positions, int parts);

/// Positions [begin, end) of a phase of an image, and blocks of 32 of its channels.
struct Stretch {
  const float* image;
  size_t phase;
  int64_t begin, end;
  Range blocks;
};

/// Writes them, split into that many parts; `copy` is the place of the first position of block 0.
/// Blocks are `pitch` positions apart.
void copy_image(const Extents& extents, const Geometry& geometry, int parts, const Stretch& stretch,
                int64_t pitch, uint16_t* copy);

}  // namespace collage::contraction
