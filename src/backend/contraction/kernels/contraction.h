// A contraction: result[p, n] = steps(sum over taps t and channels c of image[p + t, c] *
// weights[n, c, t]). Convolutions in one to three dimensions are contractions, transposed ones and
// those of an image that is enlarged by repeating its pixels too, and so are products with a
// constant matrix, whose rows are the pixels of an image of one tap.
//
// Siblings, which differ in weights and steps alone, are one contraction with a branch and a result
// each: q, k and v of attention, the 1x1 convolutions that a block begins with. The sum of two 1x1
// convolutions, of two images, is one contraction over the channels of both: the end of a residual
// block whose shortcut is a projection.
#pragma once

#include <collage/tensor.h>

#include <optional>
#include <vector>

#include "backend/contraction/kernels/epilogue.h"
#include "backend/contraction/kernels/taps.h"

namespace collage::contraction {

/// Extents that siblings share.
struct Extents {
  int64_t images = 1, in_channels = 1, groups = 1;
  Spatial in{1, 1, 1}, out{1, 1, 1};
  Taps taps;
  /// Channels innermost (products, in rows); otherwise in blocks of 16, as nChw16c.
  bool channels_last = false;

  int64_t group_inputs() const { return in_channels / groups; }
  int64_t pixels_in() const { return volume(in); }
  int64_t pixels_out() const { return volume(out); }
  /// The result pixels of a pass over one image (the most of any), along each dimension.
  Spatial pass_extent() const;
  /// The result pixels of a pass over all images: the rows of a product.
  int64_t pass_rows() const { return images * volume(pass_extent()); }
  bool operator==(const Extents&) const = default;
};

/// The computation from the image to one result.
struct Branch {
  int64_t out_channels = 1;
  Tensor weights;
  /// Strides of the weights: between groups and inside one; a kernel's elements lie side by side.
  int64_t group_stride = 0, column_stride = 0, channel_stride = 0;
  std::vector<Step> steps;
  std::vector<int> step_params;  ///< of each step's tensor; -1: it has none
};

/// An image, and its part of the contraction.
struct Image {
  size_t data = 0;  ///< the parameter that it is
  Extents extents;
};

struct Contraction : Extents {
  size_t data = 0;               ///< the parameter that is the image
  std::vector<Branch> branches;  ///< one for each result; several only where groups is 1
  /// A second image, whose channels are the last of in_channels; the rest describes the first.
  std::optional<Image> addend;

  /// Returns one or two images, with the channels of each.
  std::vector<Image> all_images() const;
};

}  // namespace collage::contraction
