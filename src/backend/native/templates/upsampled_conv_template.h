// A 3x3 convolution of an image enlarged twice by nearest neighbour, as four 2x2 convolutions of
// the image itself.
//
// Output pixel (2y + py, 2x + px) sees only two rows and two columns of the small image, so for
// each of the four phases (py, px) the nine weights fold into four: 16 multiplications a small
// pixel where the plain way takes 36, and the enlarged image is never made.
//
//   rows of phase 0: w0 at y - 1, w1 + w2 at y          rows of phase 1: w0 + w1 at y, w2 at y + 1
#pragma once

#include <string>
#include <vector>

#include "backend/native/templates/conv_problem.h"
#include "backend/native/templates/packed_weights.h"

namespace collage::native {

struct UpsampledSchedule {
  int x_tile = 13;  ///< small pixels in the register tile; each gives two output columns
  int strip = 4;    ///< small rows of one task

  std::string to_string() const;
};

/// Whether a convolution of this shape, its input being an enlarged image, can be taken apart. Both
/// layouts are blocked.
bool can_split_phases(const ConvProblem& problem);
std::vector<UpsampledSchedule> upsampled_schedules(const ConvProblem& problem, int threads,
                                                   bool avx512);

/// Extents, innermost first: (16, channel, tap x, tap y, channel block, phase x, phase y, block).
std::vector<int64_t> packed_upsampled_extents(const ConvProblem& problem);
PackedWeights<float> pack_upsampled_weights(const ConvProblem& problem, const float* weights);

/// `input` reads the small image. The result's dimensions are (lane, phase x, x, phase y, y, block,
/// n): the blocked output's memory.
Halide::Func build_upsampled(const ConvProblem& problem, const UpsampledSchedule& schedule,
                             const Access& input, Halide::ImageParam weights,
                             const Epilogue& epilogue);

}  // namespace collage::native
