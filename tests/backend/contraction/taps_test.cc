// Which pixels the taps read, against the definitions of the convolutions.
#include "backend/contraction/kernels/taps.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace collage::contraction {
namespace {

/// Pixel of the image to the kernel's elements that meet it, along width.
using Reads = std::multimap<int64_t, int64_t>;

/// What the taps say of a result pixel.
Reads reads_of(const Taps& taps, int64_t pixel) {
  const auto& pass = taps.passes[static_cast<size_t>(pixel % taps.up[2])];
  EXPECT_EQ(pass.remainder, (Spatial{0, 0, pixel % taps.up[2]}));
  Reads reads;
  for (const Tap& tap : pass.taps)
    for (const int64_t element : tap.elements)
      reads.emplace(pixel / taps.up[2] * taps.stride[2] + tap.offset[2], element);
  return reads;
}

template <typename Check>
void for_random_kernels(Check check) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int trial = 0; trial < 200; ++trial) {
    Kernel3d kernel;
    kernel.extent[2] = pick(1, 5);
    kernel.stride[2] = pick(1, 4);
    kernel.dilation[2] = pick(1, 3);
    kernel.pad[2] = pick(0, 4);
    check(kernel, pick(1, 4));
  }
}

TEST(Taps, OfTransposedConvolutionsScatterTheImage) {
  for_random_kernels([](const Kernel3d& k, int64_t) {
    const Taps taps = transposed_taps(k);
    EXPECT_EQ(taps.count(), k.extent[2]);
    // Image pixel i adds to result pixel i * stride + element * dilation - pad.
    std::map<int64_t, Reads> expected;
    for (int64_t i = -20; i < 20; ++i)
      for (int64_t e = 0; e < k.extent[2]; ++e)
        expected[i * k.stride[2] + e * k.dilation[2] - k.pad[2]].emplace(i, e);
    for (int64_t pixel = 0; pixel < 12; ++pixel) {
      const Reads reads = reads_of(taps, pixel);
      EXPECT_EQ((std::map(reads.begin(), reads.end())),
                (std::map(expected[pixel].begin(), expected[pixel].end())));
    }
  });
}

TEST(Taps, OfRepeatedPixelsReadEachOnce) {
  for_random_kernels([](const Kernel3d& k, int64_t repeats) {
    const Taps taps = convolution_taps(k, {1, 1, repeats});
    for (const Pass& pass : taps.passes)
      for (size_t t = 1; t < pass.taps.size(); ++t)
        EXPECT_LT(pass.taps[t - 1].offset[2], pass.taps[t].offset[2]);
    for (int64_t pixel = 0; pixel < 12; ++pixel) {
      Reads expected;
      for (int64_t e = 0; e < k.extent[2]; ++e) {
        const int64_t enlarged = pixel * k.stride[2] + e * k.dilation[2] - k.pad[2];
        int64_t source = -100;  // the last pixel that begins no later
        while ((source + 1) * repeats <= enlarged) ++source;
        expected.emplace(source, e);
      }
      EXPECT_EQ(reads_of(taps, pixel), expected);
    }
  });
}

TEST(Taps, OfAKernelOnADoubledImage) {
  Kernel3d kernel{{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}};
  const Taps taps = convolution_taps(kernel, {1, 2, 2});
  ASSERT_EQ(taps.passes.size(), 4u);
  EXPECT_EQ(taps.count(), 16);
  // Of the lower right pixel: the last tap is one element, the first are four.
  const Pass& pass = taps.passes[3];
  EXPECT_EQ(pass.remainder, (Spatial{0, 1, 1}));
  EXPECT_EQ(pass.taps[0], (Tap{{0, 0, 0}, {0, 1, 3, 4}}));
  EXPECT_EQ(pass.taps[1], (Tap{{0, 0, 1}, {2, 5}}));
  EXPECT_EQ(pass.taps[2], (Tap{{0, 1, 0}, {6, 7}}));
  EXPECT_EQ(pass.taps[3], (Tap{{0, 1, 1}, {8}}));
}

}  // namespace
}  // namespace collage::contraction
