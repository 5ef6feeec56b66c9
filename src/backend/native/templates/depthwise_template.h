// Depthwise convolution (one filter a channel, 1D to 3D) as a Halide pipeline; input and output in
// the same layout.
//
// Blocked, or channels last: vectors over up to 16 channels. Plain: vectors over 16 pixels of a
// row. A task is a strip of rows of one channel (block), of several where channels are last, over
// which a register tile slides with every tap unrolled. An input in memory is read where it lies:
// rows outside the map are left out, and tiles at the ends of rows have code of their own. What is
// computed in front, and padded rows of plain pixels, are copied first, small enough for L1 or L2.
#pragma once

#include <string>
#include <vector>

#include "backend/native/templates/conv_problem.h"
#include "backend/native/templates/packed_weights.h"

namespace collage::native {

struct DepthwiseSchedule {
  int x_tile = 4;  ///< pixels, or vectors of pixels (plain), in the register tile
  int y_tile = 1;
  int strip = 8;  ///< rows of one task
  int span = 0;   ///< channels of one task, where they are last

  std::string to_string() const;
};

/// `problem.shape.groups` must equal both channel counts; both layouts must be equal.
bool is_depthwise(const ConvShape& shape);
/// None where channels are last and do not divide into vectors.
std::vector<DepthwiseSchedule> depthwise_schedules(const ConvProblem& problem, int threads,
                                                   bool avx512);

/// Extents, innermost first: (16, kx, ky, kz, blocks), (channels, kx, ky, kz) where they are last,
/// or (kx, ky, kz, channels).
std::vector<int64_t> packed_depthwise_extents(const ConvProblem& problem);
PackedWeights<float> pack_depthwise_weights(const ConvProblem& problem, const float* weights);

/// As `build_conv`.
Halide::Func build_depthwise(const ConvProblem& problem, const DepthwiseSchedule& schedule,
                             const Access& input, Halide::ImageParam weights,
                             const Epilogue& epilogue);

}  // namespace collage::native
