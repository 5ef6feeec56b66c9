// Direct convolution in one to three spatial dimensions as a Halide pipeline.
//
// Two micro-kernels. `kChannels`: a register tile of pixels x blocks of 16 output channels; weights
// are vectors, input pixels are broadcast; input plain or blocked, output plain or blocked.
// `kPixels`: a tile of vectors of 16 pixels x output channels; weights are broadcast; input plain
// or blocked, output plain; right for few output channels and for 1x1 on plain data. Padding and
// any expression in front of the convolution are evaluated into a padded copy (a strip per task or
// the whole map); the epilogue is applied while the accumulators are in registers.
//
// Weights arrive packed by `pack_conv_weights` (conv_weights.h).
#pragma once

#include "backend/native/templates/conv_schedules.h"

namespace collage::native {

/// The scheduled output function; its dimensions are the output's physical ones, innermost first,
/// always with three spatial dimensions.
Halide::Func build_conv(const ConvProblem& problem, const ConvSchedule& schedule,
                        const Access& input, Halide::ImageParam weights, const Epilogue& epilogue);

}  // namespace collage::native
