// How many rows and columns of a stage are computed at a time, so that the sums that they need fill
// the registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage::native {

/// Columns are of vectors of `lanes`.
struct StageTile {
  int64_t rows = 1, columns = 1;
  int lanes = 1;
  double cost = 1;  ///< of a point, by how well registers and multipliers are used
};

/// What is asked of a tile; 0: what is best.
struct WantedTile {
  int64_t rows = 0, vectors = 0;
  bool scalar = false;  ///< columns one at a time
  /// Products of a term that instructions multiply, none where numbers are multiplied one at a
  /// time. Each takes a register before it is added and one for its columns, and tiles divide the
  /// columns even where they are shifted.
  int64_t products = 0;
};

/// The best tile for a stage of that many rows and columns that has `sums` sums in it, as near to
/// what is wanted as can be. Tiles divide the extents, but where they are `shifted`: the last one
/// then ends with the array.
StageTile stage_tile(int64_t rows, int64_t columns, size_t sums, bool shifted,
                     const WantedTile& wanted = {});

}  // namespace collage::native
