// Winograd's F(2x2, 3x3): convolutions of 3x3 taps with 16 products for four pixels in place of 36
// (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016). The result's
// pixels come in patches of 2x2, each from 4x4 pixels d of the image:
//
//   result = A^T [ sum over channels of (G g G^T) o (B^T d B) ] A
//
// where o multiplies element by element. So each of the 16 places of a transformed patch is a
// product of matrices of its own, patches by channels and channels by columns. Here these are
// products of integers: the transformed image is rounded with a unit for each place, the weights
// after their transformation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/amx/contraction.h"

namespace collage::amx::winograd {

constexpr size_t kPlaces = 16;  ///< of a transformed patch, and pixels of the image in it
constexpr size_t kResults = 4;  ///< pixels of the result in a patch

/// Whether it is a convolution of one group by 3x3 taps side by side, with stride 1.
bool can_compute(const Contraction& c);

/// The contraction as one of a pass for each place, with transformed weights.
Contraction transformed(const Contraction& c);

/// Where patches lie; all numbers are elements from the first channel of a tensor in blocks of 16.
struct Patches {
  std::vector<int32_t> sources;  ///< kPlaces for each patch; -1: in the padding
  std::array<std::vector<int32_t>, kResults> results;  ///< of each patch; -1: outside
  int64_t count() const { return static_cast<int64_t>(sources.size() / kPlaces); }
};
Patches plan_patches(const Contraction& c);

/// Patches of the image's channels in one block of 16, which lies at `plane`.
struct Channels {
  const float* plane;
  const int32_t* sources;  ///< of the first patch
  int64_t patches;
};

/// Raises each place's largest magnitude to what there is; infinite or NaN stays.
void raise_largest(const Channels& channels, std::array<float, kPlaces>& largest);

/// Writes them as integers: patches 64 bytes apart, places `place_bytes`.
void copy_patches(const Channels& channels, const std::array<float, kPlaces>& scales,
                  int64_t place_bytes, uint16_t* to);

/// From sums at the places, `rows` by kBlockColumns each and one after the other, the pixels of the
/// result in the same order: four times rows by kBlockColumns.
void transform_back(const float* sums, int64_t rows, float* results);

}  // namespace collage::amx::winograd
