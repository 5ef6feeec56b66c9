#include "backend/amx/peak.h"

#include "backend/amx/kernels/instructions.h"
#include "backend/amx/kernels/tiles.h"

namespace collage::amx {

// Four sums take turns, so that none waits for its last product.
const double kPeakRoundProducts = 4.0 * kTileRows * kTileColumns * kTileDepth;

COLLAGE_AMX void multiply_tiles_at_rest(int rounds) {
  const TileScope scope;  // the tiles are zero
  for (int r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

}  // namespace collage::amx
