#include "backend/contraction/kernels/taps.h"

#include <numeric>

namespace collage::contraction {
namespace {

/// Along one dimension.
struct AxisTap {
  int64_t offset;
  std::vector<int64_t> elements;
};
using AxisTaps = std::vector<std::vector<AxisTap>>;  // of each remainder

int64_t floor_div(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

AxisTaps convolution_axis(const Kernel3d& k, size_t d, int64_t repeats, int64_t up) {
  AxisTaps axis(static_cast<size_t>(up));
  for (int64_t r = 0; r < up; ++r) {
    std::vector<AxisTap>& taps = axis[static_cast<size_t>(r)];
    for (int64_t tap = 0; tap < k.extent[d]; ++tap) {
      const int64_t offset = floor_div(r * k.stride[d] + tap * k.dilation[d] - k.pad[d], repeats);
      if (taps.empty() || taps.back().offset != offset) taps.push_back({offset, {}});
      taps.back().elements.push_back(tap);
    }
  }
  return axis;
}

AxisTaps transposed_axis(const Kernel3d& k, size_t d) {
  AxisTaps axis(static_cast<size_t>(k.stride[d]));
  for (int64_t r = 0; r < k.stride[d]; ++r)
    for (int64_t tap = 0; tap < k.extent[d]; ++tap)
      if (const int64_t at = r + k.pad[d] - tap * k.dilation[d]; at % k.stride[d] == 0)
        axis[static_cast<size_t>(r)].push_back({at / k.stride[d], {tap}});
  return axis;
}

Pass combined(const Spatial& remainder, const std::array<AxisTaps, 3>& axes,
              const Spatial& extent) {
  const auto along = [&](size_t d) -> const std::vector<AxisTap>& {
    return axes[d][static_cast<size_t>(remainder[d])];
  };
  Pass pass{remainder, {}};
  for (const AxisTap& z : along(0))
    for (const AxisTap& y : along(1))
      for (const AxisTap& x : along(2)) {
        Tap tap{{z.offset, y.offset, x.offset}, {}};
        for (int64_t a : z.elements)
          for (int64_t b : y.elements)
            for (int64_t c : x.elements)
              tap.elements.push_back((a * extent[1] + b) * extent[2] + c);
        pass.taps.push_back(std::move(tap));
      }
  return pass;
}

std::vector<Pass> combined(const std::array<AxisTaps, 3>& axes, const Spatial& up,
                           const Spatial& extent) {
  std::vector<Pass> passes;
  for (int64_t z = 0; z < up[0]; ++z)
    for (int64_t y = 0; y < up[1]; ++y)
      for (int64_t x = 0; x < up[2]; ++x) passes.push_back(combined({z, y, x}, axes, extent));
  return passes;
}

}  // namespace

int64_t Taps::count() const {
  int64_t count = 0;
  for (const Pass& pass : passes) count += static_cast<int64_t>(pass.taps.size());
  return count;
}

Taps convolution_taps(const Kernel3d& kernel, const Spatial& repeats) {
  Taps taps;
  std::array<AxisTaps, 3> axes;
  for (size_t d = 0; d < 3; ++d) {
    // Result pixel o reads pixels (o·stride + ...) / repeats.
    const int64_t common = std::gcd(kernel.stride[d], repeats[d]);
    taps.up[d] = repeats[d] / common;
    taps.stride[d] = kernel.stride[d] / common;
    axes[d] = convolution_axis(kernel, d, repeats[d], taps.up[d]);
  }
  taps.passes = combined(axes, taps.up, kernel.extent);
  return taps;
}

Taps transposed_taps(const Kernel3d& kernel) {
  std::array<AxisTaps, 3> axes;
  for (size_t d = 0; d < 3; ++d) axes[d] = transposed_axis(kernel, d);
  return {kernel.stride, {1, 1, 1}, combined(axes, kernel.stride, kernel.extent)};
}

}  // namespace collage::contraction
