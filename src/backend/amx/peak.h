// What the matrix unit does at most: products of tiles that are loaded already.
#pragma once

namespace collage::amx {

/// Multiply-adds of bfloat16 numbers that each round of `multiply_tiles_at_rest` makes.
extern const double kPeakRoundProducts;

void multiply_tiles_at_rest(int rounds);

}  // namespace collage::amx
