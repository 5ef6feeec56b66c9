// A convolution in one to three spatial dimensions as the templates see it: its shape, the layouts
// of what it reads and writes, and whether its input lies in a buffer or is an expression. Spatial
// triples are (depth, height, width); unused ones have size 1. A 1x1 convolution should be given as
// a 1D one over the flattened map.
#pragma once

#include <array>
#include <cstdint>

#include "backend/native/codegen/access.h"

namespace collage::native {

struct ConvShape {
  int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1}, pad{0, 0, 0};
};

struct ConvProblem {
  ConvShape shape;
  ChannelLayout in_layout = ChannelLayout::kBlocked, out_layout = ChannelLayout::kBlocked;
  bool input_is_buffer = true;  ///< the access is a plain load: with no padding it is read in place
};

}  // namespace collage::native
