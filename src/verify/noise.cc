#include "verify/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/half.h"
#include "verify/magnitudes.h"

namespace collage {

namespace {

// A hash of the position (C. Wellons' lowbias32), so that elements can be computed in any order.
inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

// Of each position a number evenly distributed between -1 and 1 times the square root of 3, whose
// root mean square is 1.
class Draws {
 public:
  explicit Draws(uint64_t seed)
      : salt_(mix(static_cast<uint32_t>(seed ^ (seed >> 32)) + 0x9e3779b9U)) {}
  double at(int64_t i) const {
    return static_cast<double>(static_cast<int32_t>(mix(static_cast<uint32_t>(i) ^ salt_) +
                                                    static_cast<uint32_t>(i >> 32))) *
           (1.7320508075688772 * 0x1p-31);
  }

 private:
  uint32_t salt_;
};

// A copy whose elements are change(i, value).
template <typename Change>
Result<Tensor> changed(const Tensor& tensor, const Change& change) {
  const int64_t count = tensor.size();
  Tensor result = TRY(Tensor::allocate(tensor.dtype(), tensor.shape()));
  const auto each = [&](auto read, auto write) {
#pragma omp parallel for schedule(static) if (count > 8192)
    for (int64_t i = 0; i < count; ++i) write(i, change(i, static_cast<double>(read(i))));
  };
  if (tensor.dtype() == DType::kFloat32) {
    const float* from = tensor.data<float>();
    float* to = result.data<float>();
    each([from](int64_t i) { return from[i]; },
         [to](int64_t i, double value) { to[i] = static_cast<float>(value); });
  } else if (tensor.dtype() == DType::kFloat64) {
    const double* from = tensor.data<double>();
    double* to = result.data<double>();
    each([from](int64_t i) { return from[i]; }, [to](int64_t i, double value) { to[i] = value; });
  } else {
    const DType dtype = tensor.dtype();
    const uint16_t* from = tensor.data<uint16_t>();
    uint16_t* to = result.data<uint16_t>();
    each([=](int64_t i) { return half_to_float(from[i], dtype); },
         [=](int64_t i, double value) { to[i] = float_to_half(static_cast<float>(value), dtype); });
  }
  return result;
}

}  // namespace

Result<Tensor> with_noise(const Tensor& tensor, const Noise& noise) {
  if (!is_float(tensor.dtype()) || (noise.relative == 0 && noise.of_largest == 0 &&
                                    noise.absolute == 0 && noise.of_denormals == 0))
    return tensor;
  const Draws draws(noise.seed);
  const double absolute =
      noise.absolute + (noise.of_largest > 0 ? noise.of_largest * Magnitudes(tensor).largest() : 0);
  const double least_normal = tensor.dtype() == DType::kFloat32 ? 0x1p-126 : 0;
  return changed(tensor, [&](int64_t i, double value) {
    if (value == 0 || !std::isfinite(value)) return value;
    const bool denormal = std::abs(value) < least_normal;
    const double relative = noise.relative + (denormal ? noise.of_denormals : 0);
    return value + draws.at(i) * (relative * value + absolute);
  });
}

Result<Tensor> with_noise_of_sizes(const Tensor& tensor, const Tensor& sizes, double times,
                                   uint64_t seed) {
  const Draws draws(seed);
  const auto* size = sizes.data<double>();
  return changed(tensor, [&](int64_t i, double value) {
    return std::isfinite(value) && std::isfinite(size[i]) ? value + draws.at(i) * times * size[i]
                                                          : std::nan("");
  });
}

Result<Tensor> with_nothing_infinite(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return tensor;
  return changed(tensor,
                 [](int64_t, double value) { return std::isfinite(value) ? value : std::nan(""); });
}

Result<Tensor> with_moved_steps(const Tensor& tensor, uint32_t every, uint64_t seed) {
  const auto moved = [&]<typename T>(T) -> Result<Tensor> {
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    Tensor result = tensor.clone();
    T* data = result.data<T>();
    const uint32_t salt = mix(static_cast<uint32_t>(seed ^ (seed >> 32)) + 0x85ebca6bU);
    for (int64_t i = 0, n = tensor.size(); i < n; ++i) {
      const uint32_t drawn = mix(static_cast<uint32_t>(i) ^ salt);
      if (drawn % every != 0) continue;
      const bool up = data[i] == kLeast || (data[i] != kMost && drawn / every % 2 == 0);
      data[i] = static_cast<T>(data[i] + (up ? 1 : -1));
    }
    return result;
  };
  switch (tensor.dtype()) {
    case DType::kInt8:
      return moved(int8_t{});
    case DType::kUInt8:
      return moved(uint8_t{});
    case DType::kInt16:
      return moved(int16_t{});
    case DType::kUInt16:
      return moved(uint16_t{});
    default:
      return tensor;
  }
}

}  // namespace collage
