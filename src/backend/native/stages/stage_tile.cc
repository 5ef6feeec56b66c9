#include "backend/native/stages/stage_tile.h"

#include <algorithm>
#include <cstdlib>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"

namespace collage::native {

namespace {

constexpr double kBusy = 10;  // sums side by side that keep the multipliers busy
// Where two products are added up before they are added to the sum, which then waits for one
// addition alone.
constexpr double kBusyWithTwo = 6;

/// Registers for vectors of sums and of columns; one more holds what rows multiply them by.
int64_t most_vectors() { return (vector_width() >= 16 ? 32 : 16) - 1; }

}  // namespace

StageTile stage_tile(int64_t rows, int64_t columns, size_t sums, bool shifted,
                     const WantedTile& wanted) {
  StageTile best;
  best.lanes = wanted.scalar ? 1 : vector_width();
  const auto too_wide = [&](int lanes) {
    return lanes > columns || (wanted.products > 0 && columns % lanes != 0);
  };
  while (best.lanes > 1 && too_wide(best.lanes)) best.lanes /= 2;
  const int64_t registers = most_vectors() - wanted.products;
  const int64_t factors = std::max<int64_t>(1, wanted.products);  // registers for a vector's
  const double busy = wanted.products == 2 ? kBusyWithTwo : kBusy;
  const int64_t budget = std::max<int64_t>(2, registers / static_cast<int64_t>(sums));
  double least = 0;
  for (int64_t vectors = 1; (1 + factors) * vectors <= budget && vectors * best.lanes <= columns;
       ++vectors) {
    const int64_t width = vectors * best.lanes;
    const bool shifted_columns = shifted && wanted.products == 0 && vectors <= 2;
    if (columns % width != 0 && !shifted_columns) continue;
    for (int64_t r = 1; r <= std::min(rows, budget / vectors - factors); ++r) {
      if (rows % r != 0 && !shifted) continue;
      const auto sum = static_cast<double>(r * vectors);
      const double loads = static_cast<double>(r + vectors) / sum;
      const auto distance = [](int64_t n, int64_t want) {
        return want == 0 ? 0.0 : static_cast<double>(std::abs(n - want));
      };
      const double cost =
          1e3 * (distance(r, wanted.rows) + distance(vectors, wanted.vectors)) +
          in_tiles(rows, r) * in_tiles(columns, width) * std::max(1.0, 0.55 + 0.5 * loads) *
              (sum < busy ? busy / sum : 1.0 + 0.002 * static_cast<double>(budget - r * vectors));
      if (least != 0 && cost >= least) continue;
      least = best.cost = cost;
      best.rows = r;
      best.columns = width;
    }
  }
  if (least == 0) {
    best.columns = best.lanes;
    best.cost = kBusy;
  }
  return best;
}

}  // namespace collage::native
