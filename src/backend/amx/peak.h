// The peak of the matrix unit: products of tiles that are loaded already.
#pragma once

namespace collage::amx {

/// Multiply-adds of bfloat16 numbers in each round of `multiply_tiles_at_rest`.
extern const double kPeakRoundProducts;

void multiply_tiles_at_rest(int rounds);

}  // namespace collage::amx
