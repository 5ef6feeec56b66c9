// Weights of a convolution in the order in which the direct convolution's micro-kernels read them
// (conv_template.h).
#pragma once

#include <cstdint>
#include <vector>

#include "backend/native/templates/conv_schedules.h"
#include "backend/native/templates/packed_weights.h"

namespace collage::native {

/// Extents, innermost first, of the packed weights.
std::vector<int64_t> packed_conv_extents(const ConvProblem& problem, const ConvSchedule& schedule);

/// Packs OI[D][H]W weights.
PackedWeights<float> pack_conv_weights(const ConvProblem& problem, const ConvSchedule& schedule,
                                       const float* weights);

}  // namespace collage::native
