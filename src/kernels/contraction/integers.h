// Numbers as 16-bit integers.
//
// The image is scaled so that the largest number of what is copied at a time becomes kImageLimit,
// the weights of each column so that their largest becomes kWeightLimit; both are rounded. A number
// errs by half a unit of these, however small it is: 2^-14 of the largest, and 2^-13 (down to 2^-11
// where weights are coarse). Products add up in 32 bits without overflow for as many steps as the
// weights allow (PackedOperand::run), then in float32.
#pragma once

#include <cstdint>

namespace collage::contraction {

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

}  // namespace collage::contraction
