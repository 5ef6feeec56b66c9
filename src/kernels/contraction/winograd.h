// Winograd's F(m x m, 3x3) for m = 2 and 4: convolutions of 3x3 taps with (m + 2)^2 products for
// m^2 pixels in place of 9 m^2 (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016). The result's pixels come in patches of m x m, each from (m + 2)^2 pixels d
// of the image:
//
//   result = A^T [ sum over channels of (G g G^T) o (B^T d B) ] A
//
// where o multiplies element by element. So each of the places of a transformed patch is a product
// of matrices of its own, patches by channels and channels by columns. Here these are products of
// integers, rounded after the transformations: with units for each place, as places differ in size.
//
// The matrices interpolate polynomials at 0, infinity and for m = 2 at 1 and -1, for m = 4 at
// +-sqrt(1/2) and +-sqrt(2): of integers these err half as much as at the usual +-1 and +-2.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/contraction/contraction.h"
#include "kernels/contraction/parts.h"

namespace collage::contraction::winograd {

/// Which m.
enum class Form : int64_t { kTwo = 2, kFour = 4 };
/// The side of a patch of the result, and from patch to patch.
constexpr int64_t step_of(Form form) { return static_cast<int64_t>(form); }
/// The side of one in the image, and when transformed.
constexpr int64_t side_of(Form form) { return step_of(form) + 2; }
constexpr int64_t places_of(Form form) { return side_of(form) * side_of(form); }
constexpr int64_t results_of(Form form) { return step_of(form) * step_of(form); }
constexpr size_t kMostPlaces = 36, kMostResults = 16;

/// One for each place; what is beyond the form's is zero.
using Numbers = std::array<float, kMostPlaces>;

/// What transformed numbers become: sums are short, weights give up the bits that would break them
/// in two.
inline constexpr Parts kNumbers{1, 1, true, true};

/// Whether it is a convolution of one group by 3x3 taps side by side, with stride 1.
bool can_compute(const Contraction& c);

/// With a pass for each place in place of the one.
Extents by_places(const Extents& extents, Form form);

/// The contraction as one of a pass for each place, with transformed weights. At each place these
/// are multiples of what `units` says, so that their largest is 1.
struct Transformed {
  Contraction contraction;
  Numbers units{};
};
Transformed transformed(const Contraction& c, Form form);

/// Where patches lie; all numbers are elements from the first channel of a tensor in blocks of 16.
struct Patches {
  std::vector<int32_t> sources;  ///< places_of(form) for each patch; -1: in the padding
  std::array<std::vector<int32_t>, kMostResults> results;  ///< of each patch; -1: outside
  int64_t count = 0;
};
Patches plan_patches(const Contraction& c, Form form);

/// Patches of the image's channels in one block of 16, which lies at `plane`.
struct Channels {
  const float* plane;
  const int32_t* sources;  ///< of the first patch
  int64_t patches;
};

/// Raises each place's largest magnitude to what there is; infinite or NaN stays.
void raise_largest(Form form, const Channels& channels, Numbers& largest);

/// Writes them as integers: patches 64 bytes apart, places `place_bytes`.
void copy_patches(Form form, const Channels& channels, const Numbers& scales, int64_t place_bytes,
                  uint16_t* to);

/// From sums at the places, `rows` by kBlockColumns each and one after the other, the pixels of the
/// result in the same order: results_of(form) times rows by kBlockColumns.
void transform_back(Form form, const float* sums, int64_t rows, float* results);

}  // namespace collage::contraction::winograd
