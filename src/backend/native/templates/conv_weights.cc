#include "backend/native/templates/conv_weights.h"

#include "backend/native/templates/conv_blocking.h"

namespace collage::native {

std::vector<int64_t> packed_conv_extents(const ConvProblem& p, const ConvSchedule& schedule) {
  const ConvShape& s = p.shape;
  if (schedule.vectors == ConvSchedule::Vectors::kPixels) {
    return {s.out_channels, s.kernel[2], s.kernel[1], s.kernel[0], s.in_channels / s.groups};
  }
  const ConvBlocking b = conv_blocking(p);
  return {kChannelBlock, b.ci, s.kernel[2], s.kernel[1], s.kernel[0], b.cb, b.kb};
}

PackedWeights<float> pack_conv_weights(const ConvProblem& p, const ConvSchedule& schedule,
                                       const float* weights) {
  const ConvShape& s = p.shape;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  if (schedule.vectors == ConvSchedule::Vectors::kPixels) {
    PackedWeights<float> packed(s.out_channels * group_in * taps);
    for (int64_t k = 0; k < s.out_channels; ++k) {
      for (int64_t c = 0; c < group_in; ++c) {
        for (int64_t t = 0; t < taps; ++t)
          packed[(c * taps + t) * s.out_channels + k] = weights[(k * group_in + c) * taps + t];
      }
    }
    return packed;
  }
  const ConvBlocking b = conv_blocking(p);
  PackedWeights<float> packed(kChannelBlock * b.ci * taps * b.cb * b.kb);
  for (int64_t k = 0; k < s.out_channels; ++k) {
    const int64_t kb = k / kChannelBlock, lane = k % kChannelBlock;
    for (int64_t c = 0; c < group_in; ++c) {
      // Channel within the joined group: small groups sit on the diagonal of a 16 x 16 block.
      const int64_t in = b.diagonal ? (k / group_out * group_in + c) % kChannelBlock : c;
      const int64_t cb = in / b.ci, ci = in % b.ci;
      for (int64_t t = 0; t < taps; ++t) {
        packed[(((kb * b.cb + cb) * taps + t) * b.ci + ci) * kChannelBlock + lane] =
            weights[(k * group_in + c) * taps + t];
      }
    }
  }
  return packed;
}

}  // namespace collage::native
