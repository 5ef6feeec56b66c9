// Winograd convolution as a Halide pipeline: 3x3 with stride 1, channel-blocked input and output,
// tiles of 2x2 or 4x4 outputs (F(2,3), F(4,3); cook_toom.h), and 3x3x3 by depth slices: the last
// two dimensions transformed, products summed over the depth taps that see the volume.
//
//   padded --B'.B--> V[block][u][v][tile][16]     U[k group][u][v][tap][channel][16 k]  packed once
//   M[u][v][tile][k] = sum_c U V  (for each u, v a matrix product)  --A'.A--> tile --> epilogue
//
// A strip is some rows of tiles. kRows: a task makes whole strips, V and products staying in its
// L2. kGroups: for one strip after the other, first V in parallel, then one parallel loop over
// groups of output channels fuses products and output transform, so that every weight is read once
// a strip.
#pragma once

#include <string>
#include <vector>

#include "backend/native/conv_template.h"

namespace collage::native {

struct WinogradSchedule {
  enum class Split { kRows, kGroups };
  int outputs = 4;  ///< rows and columns of a tile
  Split split = Split::kRows;
  int k_tile = 2;  ///< blocks of 16 output channels in a group; divides their number
  int x_tile = 7;  ///< tiles in the register tile
  int y_tile = 1;
  int strip = 1;  ///< rows of tiles; divisible by y_tile unless one strip is the whole map

  std::string to_string() const;  ///< begins with winograd2 or winograd4
};

/// Schedules worth measuring, most promising first; empty where the template does not apply.
std::vector<WinogradSchedule> winograd_schedules(const ConvProblem& problem, int threads,
                                                 bool avx512);

/// Extents, innermost first: (16, k tile, channel, depth tap, u * v, group).
std::vector<int64_t> packed_winograd_extents(const ConvProblem& problem,
                                             const WinogradSchedule& schedule);
std::vector<float> pack_winograd_weights(const ConvProblem& problem,
                                         const WinogradSchedule& schedule, const float* weights);

/// As `build_conv`.
Halide::Func build_winograd(const ConvProblem& problem, const WinogradSchedule& schedule,
                            const Access& input, Halide::ImageParam weights,
                            const Epilogue& epilogue);

}  // namespace collage::native
