#include "backend/native/templates/register_tile.h"

#include <algorithm>

namespace collage::native {

int registers_of(int blocks, bool avx512) { return avx512 ? blocks : 2 * blocks; }

int most_rows(int blocks, bool avx512) {
  const int weights = registers_of(blocks, avx512);
  const int left = avx512 ? std::min(28, 32 - weights) : 15 - weights;
  return std::max(1, left / weights);
}

double tile_cost(int blocks, int rows, bool avx512) {
  constexpr double kBusy = 8;  // accumulators
  const int weights = registers_of(blocks, avx512), accumulators = weights * rows;
  const double loads = static_cast<double>(weights + rows) / accumulators;
  return std::max(1.0, 0.55 + 0.5 * loads) *
         (accumulators < kBusy ? kBusy / accumulators : 1.0 + 0.004 * (28 - accumulators));
}

}  // namespace collage::native
