// Direct convolution in one to three spatial dimensions as a Halide pipeline.
//
// Two micro-kernels. `kChannels`: a register tile of pixels x blocks of 16 output channels; weights
// are vectors, input pixels are broadcast; input plain or blocked, output plain or blocked.
// `kPixels`: a tile of vectors of 16 pixels x output channels; weights are broadcast; input and
// output plain; right for few output channels and for 1x1 on plain data. Padding and any expression
// in front of the convolution are evaluated into a padded copy (a strip per task or the whole map);
// the epilogue is applied while the accumulators are in registers.
//
// Weights arrive packed by `pack_conv_weights`. Spatial triples are (depth, height, width); unused
// ones have size 1. A 1x1 convolution should be given as a 1D one over the flattened map.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/native/access.h"
#include "backend/native/packed_weights.h"

namespace collage::native {

struct ConvShape {
  int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1}, pad{0, 0, 0};

  double flops() const;
};

struct ConvSchedule {
  enum class Vectors { kChannels, kPixels };
  enum class Split { kRows, kChannels };  ///< what the parallel tasks divide
  Vectors vectors = Vectors::kChannels;
  Split split = Split::kRows;
  int k_tile = 1;       ///< kChannels: blocks of 16 output channels; kPixels: output channels
  int x_tile = 14;      ///< kChannels: pixels; kPixels: vectors of 16
  int y_tile = 1;       ///< rows in the register tile
  int strip = 1;        ///< rows of one task (kRows)
  bool k_inner = true;  ///< output-channel loop inside the pixel loops
  int streams = 1;      ///< kChannels: parts of the input channels summed side by side
  int k_task = 1;       ///< kChannels: k tiles of one task (kChannels), one after the other
  bool ahead = false;   ///< weights are read ahead (weights_ahead.h)

  std::string to_string() const;
};

struct ConvProblem {
  ConvShape shape;
  ChannelLayout in_layout = ChannelLayout::kBlocked, out_layout = ChannelLayout::kBlocked;
  bool input_is_buffer = true;  ///< the access is a plain load: with no padding it is read in place
};

/// Schedules worth measuring, most promising first; empty where the template does not apply.
std::vector<ConvSchedule> conv_schedules(const ConvProblem& problem, int threads, bool avx512);

/// Extents, innermost first, of the packed weights.
std::vector<int64_t> packed_conv_extents(const ConvProblem& problem, const ConvSchedule& schedule);

/// Packs OI[D][H]W weights.
PackedWeights<float> pack_conv_weights(const ConvProblem& problem, const ConvSchedule& schedule,
                                       const float* weights);

/// The scheduled output function; its dimensions are the output's physical ones, innermost first,
/// always with three spatial dimensions.
Halide::Func build_conv(const ConvProblem& problem, const ConvSchedule& schedule,
                        const Access& input, Halide::ImageParam weights, const Epilogue& epilogue);

}  // namespace collage::native
