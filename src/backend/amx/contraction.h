// A function as one contraction: result[p, n] = steps(sum over taps t and channels c of
// image[p + t, c] * weights[n, c, t]). Convolutions in one to three dimensions are such, and so are
// products with a constant matrix, whose rows are the pixels of an image of one tap.
//
// Siblings, which differ in weights and steps alone, are one contraction with a branch and a result
// each: q, k and v of attention, the 1x1 convolutions that a block begins with.
#pragma once

#include <collage/tensor.h>

#include <array>

#include "backend/amx/epilogue.h"

namespace collage::amx {

/// Depth, height, width; unused ones come first and have extent 1.
using Spatial = std::array<int64_t, 3>;

/// What siblings have in common.
struct Extents {
  int64_t images = 1, in_channels = 1, groups = 1;
  Spatial in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1},
      pad{0, 0, 0};
  /// Channels innermost (products, in rows); otherwise in blocks of 16, as nChw16c.
  bool channels_last = false;

  int64_t group_inputs() const { return in_channels / groups; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t pixels_in() const { return in[0] * in[1] * in[2]; }
  int64_t pixels_out() const { return out[0] * out[1] * out[2]; }
  bool operator==(const Extents&) const = default;
};

/// What becomes of the image on the way to one result.
struct Branch {
  int64_t out_channels = 1;
  Tensor weights;
  int64_t column_stride = 0, channel_stride = 0;  ///< in the weights; taps lie side by side
  std::vector<Step> steps;
  std::vector<int> step_params;  ///< of each step's tensor; -1: it has none
};

struct Contraction : Extents {
  size_t data = 0;               ///< the parameter that is the image
  std::vector<Branch> branches;  ///< one for each result; several only where groups is 1
};

/// Whether the call can be one, types and attributes considered.
Status check_anchor(const CallNode& call);
/// Along which of the result's dimensions its channels lie.
size_t channel_axis(const CallNode& anchor);
/// Whether two calls that can each be one, of one image, can be one together.
bool are_siblings(const CallNode& a, const CallNode& b);

/// Why the function is none, if so. `function` is flat; its result is a tensor or a tuple of such.
Result<Contraction> read_contraction(const Function& function);

}  // namespace collage::amx
