// The epilogue of a product or convolution in its kernel, element by element: sums with a vector
// along the channels or with a tensor of the result's shape, scales, activations.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "backend/contraction/kernels/tile.h"
#include "ir/expr.h"

namespace collage::contraction {

struct Step {
  enum class Kind {
    kLinear,  ///< value + columns + tensor (each if there), held between low and high
    kScale,   ///< value * columns
    kLeakyRelu,
    kGeluErf,
    kGeluTanh,
    kSigmoid,
    kSilu,
    kTanh,
  };
  Kind kind = Kind::kLinear;
  /// One value for each channel of the result, then zeros up to whole tiles.
  std::vector<float> columns;
  Expr tensor;  ///< of the result's shape, or null
  float low = -std::numeric_limits<float>::infinity(),
        high = std::numeric_limits<float>::infinity();
  float slope = 0;  ///< of kLeakyRelu below zero
};

/// The place of one tile in a result.
struct TilePlace {
  std::span<const int32_t> rows;  ///< element offset of each; -1: no row
  int64_t offset;                 ///< added to each: where the tile's first column lies
  int64_t first_column;           ///< of the whole result
  int columns;                    ///< that exist, of 16
  bool pad;                       ///< write zeros for those that do not
  float* out;
  std::span<const float* const> tensors;  ///< one for each step, null where it has none
};

/// What the tiles of a result share.
struct Destination {
  float* out;
  std::span<const float* const> tensors;
  int64_t plane;         ///< elements from a tile's first column to the next tile's
  int64_t out_channels;  ///< in all
  bool pad;
};
/// Returns the place of the tile with that number across the columns.
inline TilePlace tile_place(const Destination& to, std::span<const int32_t> rows,
                            int64_t tile_column) {
  const int64_t first = tile_column * kTileColumns;
  return {rows,      tile_column * to.plane,
          first,     static_cast<int>(std::min(kTileColumns, to.out_channels - first)),
          to.pad,    to.out,
          to.tensors};
}

/// Applies the steps to a tile (rows of kBlockColumns elements, overwritten) and writes it.
void finish_tile(std::span<const Step> steps, float* tile, const TilePlace& place);

}  // namespace collage::contraction
