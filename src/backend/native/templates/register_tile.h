// What the register tile of a template's micro-kernel costs: `rows` accumulators of `blocks` blocks
// of 16 lanes each, where one row at a time multiplies the blocks' weights by a number of its own.
#pragma once

#include "base/integers.h"

namespace collage::native {

/// How many times as much is computed of an extent that is computed in whole tiles.
inline double in_tiles(int64_t extent, int64_t tile) {
  return static_cast<double>(round_up(extent, tile)) / static_cast<double>(extent);
}

/// One of AVX-512 for a block, two of AVX2.
int registers_of(int blocks, bool avx512);

/// So many rows leave registers for the weights, at least one. AVX2 has half as many registers, and
/// needs one more for the row's number.
int most_rows(int blocks, bool avx512);

/// Of a multiply-add: 1 where loads do not limit it and accumulators enough keep the units busy.
double tile_cost(int blocks, int rows, bool avx512);

}  // namespace collage::native
