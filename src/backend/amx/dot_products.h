// Products of 16-bit integers by the vector unit (AVX-512 VNNI), for processors without a matrix
// unit: an instruction adds the products of 16 pairs, twice as many as float32's multiply-add, and
// as many as one of bfloat16, which has 8 digits where these have 13 and more.
//
// The image is scaled so that the largest number of what is copied at a time becomes kImageLimit,
// the weights of each column so that their largest becomes kWeightLimit; both are rounded. A number
// errs by half a unit of these, however small it is: 2^-14 of the largest, and 2^-13 (down to 2^-11
// where weights are coarse). Products add up in 32 bits without overflow for as many steps as the
// weights allow (PackedOperand::run), then in float32.
#pragma once

#include <cstdint>

#include "backend/amx/tiles.h"
#include "base/result.h"

namespace collage::amx {

constexpr int kImageLimit = (1 << 13) - 1, kWeightLimit = (1 << 12) - 1;
/// Of the absolute values of the weights that one sum of products may meet.
constexpr int64_t kRunLimit = (int64_t{1} << 31) / (kImageLimit + 1) - 1;

/// What numbers of an image are multiplied by when they become integers, and what undoes it.
struct ImageUnit {
  float there = 0, back = 1;
};
/// Of an image whose largest magnitude that is. Zeros stay zeros; what is beyond float32's range
/// makes all results NaN.
ImageUnit image_unit(float largest);
/// Of two magnitudes.
float larger_or_nan(float a, float b);

/// Whether this processor has such products.
Status dot_products();

/// Rows of a tile: the sums of two tiles by 32 columns are as many as registers hold.
constexpr int kFewestDotRows = 4, kMostDotRows = 7;

/// What becomes of sums that go straight to the result: held between low and high after a number
/// for each column and an element of a tensor of the result's shape are added. Of two tiles down or
/// across.
struct DotEnding {
  const int32_t* rows[2];   ///< element offset of each row; -1: the row is none
  float* out[2];            ///< what the offsets are added to
  const float* tensor[2];   ///< likewise, or null
  const float* columns[2];  ///< 16 each
  uint16_t exist[2];        ///< of the columns, a bit each
  bool pad;                 ///< write zeros for those that do not
  float low, high;
};

/// One block of a result: up to two tiles down and two across. The rows of a[i] lie 64 bytes apart;
/// c holds the rows of tile after tile.
struct DotBlock : Block {
  int64_t run = 0;                 ///< steps that add up without overflow
  const float* factors = nullptr;  ///< what a unit of each column stands for,
  float factor = 0;                ///< and one of the image
  /// Not null: where the results go; what c holds then is nobody's. The steps must be one run.
  const DotEnding* ending = nullptr;
};

/// c = A · B, for tiles of kFewestDotRows to kMostDotRows rows.
void multiply_rows(const DotBlock& block, int tile_rows, int tiles_down, int tiles_across);

}  // namespace collage::amx
