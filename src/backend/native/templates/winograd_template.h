// Winograd convolution as a Halide pipeline: 3x3 with stride 1, channel-blocked input and output,
// tiles of 2x2 or 4x4 outputs (F(2,3), F(4,3); cook_toom.h), and 3x3x3 by depth slices: the last
// two dimensions transformed, products summed over the depth taps that see the volume.
//
//   padded --B'.B--> V[block][u][v][tile][16]     U[k group][u][v][tap][channel][16 k]  packed once
//   M[u][v][tile][k] = sum_c U V  (for each u, v a matrix product)  --A'.A--> tile --> epilogue
//
// A task makes a strip of some rows of tiles for a part of the output channels: V, which stays in
// its L2, then group by group the products and the output transform. Tasks that share a strip each
// make its V: on the machines measured that costs less than reading it from the other core's cache.
#pragma once

#include <string>
#include <vector>

#include "backend/native/templates/conv_problem.h"
#include "backend/native/templates/packed_weights.h"

namespace collage::native {

struct WinogradSchedule {
  int outputs = 4;  ///< rows and columns of a tile
  int k_tile = 2;   ///< blocks of 16 output channels in a group; divides their number
  int x_tile = 7;   ///< tiles in the register tile
  int y_tile = 1;
  int k_parts = 1;     ///< tasks that share a strip, each for some of the groups
  int streams = 1;     ///< parts of the channels summed side by side; divides their blocks
  int strip = 1;       ///< rows of tiles; divisible by y_tile unless one strip is the whole map
  bool ahead = false;  ///< weights are read ahead (weights_ahead.h)

  bool operator==(const WinogradSchedule&) const = default;
  std::string to_string() const;  ///< begins with winograd2 or winograd4
};

/// Schedules worth measuring, most promising first; empty where the template does not apply.
std::vector<WinogradSchedule> winograd_schedules(const ConvProblem& problem, int threads,
                                                 bool avx512);

/// Extents, innermost first: (16, channel, k tile, depth tap, u * v, group).
std::vector<int64_t> packed_winograd_extents(const ConvProblem& problem,
                                             const WinogradSchedule& schedule);
PackedWeights<float> pack_winograd_weights(const ConvProblem& problem,
                                           const WinogradSchedule& schedule, const float* weights);

/// As `build_conv`.
Halide::Func build_winograd(const ConvProblem& problem, const WinogradSchedule& schedule,
                            const Access& input, Halide::ImageParam weights,
                            const Epilogue& epilogue);

}  // namespace collage::native
