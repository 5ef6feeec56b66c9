// The pixels of an image that a convolution's result reads.
//
// Along each dimension result pixel up·m + r reads image pixels stride·m + offset, with offsets
// that depend on the remainder r alone. So a convolution whose result is finer than its image is up
// ordinary ones, each of which gives every up-th pixel:
//
//   convolution                        up 1         offset: tap - pad
//   transposed one of stride s         up s         (r + pad - tap) / s, of taps that divide
//   one of an image whose pixels are   up u         (r + tap - pad) / u, rounded down; taps that
//   repeated u times                                meet one pixel are one, their weights' sum
//
//   3 taps, u = 2, pad 1:  r = 0: w0 at m - 1, w1 + w2 at m      r = 1: w0 + w1 at m, w2 at m + 1
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::contraction {

/// Depth, height, width; unused ones come first and have extent 1.
using Spatial = std::array<int64_t, 3>;
inline int64_t volume(const Spatial& s) { return s[0] * s[1] * s[2]; }

struct Tap {
  Spatial offset;
  std::vector<int64_t> elements;  ///< of the kernel: their weights' sum is the tap's
  bool operator==(const Tap&) const = default;
};

/// The result pixels of one remainder.
struct Pass {
  Spatial remainder{0, 0, 0};
  std::vector<Tap> taps;  ///< there may be none: the sum is zero
  bool operator==(const Pass&) const = default;
};

struct Taps {
  Spatial up{1, 1, 1}, stride{1, 1, 1};
  std::vector<Pass> passes{{{0, 0, 0}, {{{0, 0, 0}, {0}}}}};  ///< of a product: one tap

  /// The pixels of all passes.
  int64_t count() const;
  bool operator==(const Taps&) const = default;
};

/// A convolution's attributes; `pad` is the padding before the image.
struct Kernel3d {
  Spatial extent{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
};

/// Returns the taps of a convolution of the image with each pixel repeated that many times.
Taps convolution_taps(const Kernel3d& kernel, const Spatial& repeats);
Taps transposed_taps(const Kernel3d& kernel);

}  // namespace collage::contraction
