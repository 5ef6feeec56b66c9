#include "cost/analytic.h"

namespace collage {

double analytic_seconds(double flops, double bytes) {
  constexpr double kFlopsPerSecond = 1e9, kBytesPerSecond = 2e9, kCall = 5e-6;
  return kCall + flops / kFlopsPerSecond + bytes / kBytesPerSecond;
}

double least_conversion_seconds(const TensorType& type, const Encoding& from, const Encoding& to,
                                int threads) {
  constexpr double kBytesPerSecond = 50e9;  // of a core
  const double elements = static_cast<double>(num_elements(type.shape));
  const double bytes =
      elements * static_cast<double>(dtype_size(from.dtype) + dtype_size(to.dtype));
  return bytes / (kBytesPerSecond * threads);
}

}  // namespace collage
