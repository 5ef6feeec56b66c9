#include "backend/native/conv_problem.h"

namespace collage::native {

double ConvShape::flops() const {
  double f = 2.0 * static_cast<double>(batch) * static_cast<double>(out_channels) *
             static_cast<double>(in_channels / groups);
  for (int d = 0; d < 3; ++d) f *= static_cast<double>(out[d] * kernel[d]);
  return f;
}

}  // namespace collage::native
