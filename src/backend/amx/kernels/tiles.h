// The processor's matrix unit (Intel AMX): eight registers of 16 rows of 64 bytes ("tiles"), and an
// instruction that adds the product of a 16x32 and a 32x16 matrix of bfloat16 to a 16x16 matrix of
// float32.
#pragma once

#include <cstdint>

#include "backend/contraction/kernels/micro_kernel.h"

namespace collage::amx {

using contraction::Block;
using contraction::kBlockColumns;
using contraction::kTileColumns;
using contraction::kTileDepth;
using contraction::kTileElements;
using contraction::kTileRows;
using contraction::Parts;

/// Sets the calling thread's tiles to full size while it exists; restores the state that other code
/// (oneDNN) left.
class TileScope {
 public:
  TileScope();
  ~TileScope();
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

 private:
  alignas(64) uint8_t before_[64];
};

/// The parts that numbers can be split into.
inline constexpr Parts kAllParts[] = {{1, 1}, {1, 2}, {2, 2}, {3, 3}};

/// Computes block.c = A · B, in parts of bfloat16, one of kAllParts. Within a TileScope.
void multiply_block(const Block& block, int tiles_down, int tiles_across, Parts parts);

/// The micro-kernel for contractions.
const contraction::MicroKernel& tile_micro_kernel();

}  // namespace collage::amx
