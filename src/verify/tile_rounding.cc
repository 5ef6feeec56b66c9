#include "verify/tile_rounding.h"

#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "ir/op.h"
#include "verify/magnitudes.h"

namespace collage {

namespace {

constexpr int64_t kTaps = 3;

bool all_are(const Ints& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == value; });
}

// A convolution with its sizes; of two dimensions it has one slice.
struct Tiled {
  int64_t images, groups, inputs, outputs;  // channels of a group
  int64_t in_slices, out_slices, slice_taps, height, width, out_height, out_width;
  int64_t slices_before, above, left;  // padding
  int64_t side, rows, columns;         // tiles

  Tiled(const CallNode& call, std::span<const Tensor> arguments, int tile_side) {
    const Shape &data = arguments[0].shape(), &weights = arguments[1].shape();
    const Shape& result = call.tensor_type().shape;
    const Ints& padding = call.attrs.ints("padding");
    const size_t rank = data.size();
    const bool deep = rank == 5;
    images = data[0];
    groups = call.attrs.integer("groups");
    inputs = data[1] / groups;
    outputs = result[1] / groups;
    in_slices = deep ? data[2] : 1;
    out_slices = deep ? result[2] : 1;
    slice_taps = deep ? weights[2] : 1;
    height = data[rank - 2];
    width = data[rank - 1];
    out_height = result[rank - 2];
    out_width = result[rank - 1];
    slices_before = deep ? padding[0] : 0;
    above = padding[rank - 4];
    left = padding[rank - 3];
    side = tile_side;
    rows = ceil_div(out_height, side);
    columns = ceil_div(out_width, side);
  }
};

// The largest magnitude of each tile's patch of a slice; NaN where one is not finite.
template <typename Number>
void find_patches(const Tiled& t, const Number& number, int64_t first,
                  std::vector<double>& patches) {
  for (int64_t row = 0; row < t.rows; ++row)
    for (int64_t column = 0; column < t.columns; ++column) {
      double largest = 0;
      const int64_t top = row * t.side - t.above, from = column * t.side - t.left;
      const int64_t bottom = std::min(t.height, top + t.side + kTaps - 1);
      const int64_t to = std::min(t.width, from + t.side + kTaps - 1);
      for (int64_t y = std::max<int64_t>(0, top); y < bottom; ++y)
        for (int64_t x = std::max<int64_t>(0, from); x < to; ++x) {
          const double value = number(first + y * t.width + x);
          largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : NAN;
          if (std::isnan(largest)) x = to, y = bottom;
        }
      patches[static_cast<size_t>(row * t.columns + column)] = largest;
    }
}

}  // namespace

int tile_side(const Rounding& rounding) {
  if (rounding.sums == rounding::kWinograd2.sums) return 2;
  return rounding.sums == rounding::kWinograd4.sums ? 4 : 0;
}

bool can_be_tiled(const CallNode& call) {
  if (call.op == nullptr || (call.op->name != "nn.conv2d" && call.op->name != "nn.conv3d"))
    return false;
  const Shape& weights = call.args[1]->tensor_type().shape;
  return all_are({weights.end() - 2, weights.end()}, kTaps) &&
         all_are(call.attrs.ints("strides"), 1) && all_are(call.attrs.ints("dilation"), 1);
}

Result<Tensor> sizes_of_tiles(const CallNode& call, std::span<const Tensor> arguments, int side) {
  const Tiled t(call, arguments, side);
  const Tensor &data = arguments[0], &weights = arguments[1];
  Tensor sizes = TRY(Tensor::allocate(DType::kFloat64, call.tensor_type().shape));
  // The sum of the squares of each filter's taps, by output channel, input channel and slice.
  const int64_t taps = kTaps * kTaps, filters = weights.size() / taps;
  std::vector<double> norms(static_cast<size_t>(filters), 0);
  with_numbers(weights, [&](const auto& number) {
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t k = 0; k < taps; ++k) {
        const double value = number(f * taps + k);
        norms[static_cast<size_t>(f)] += value * value;
      }
  });
  const int64_t tiles = t.rows * t.columns, plane = t.height * t.width;
  const int64_t planes = t.images * t.groups * t.inputs * t.in_slices;
  std::vector<std::vector<double>> patches(static_cast<size_t>(planes),
                                           std::vector<double>(static_cast<size_t>(tiles)));
  with_numbers(data, [&](const auto& number) {
#pragma omp parallel for
    for (int64_t p = 0; p < planes; ++p)
      find_patches(t, number, p * plane, patches[static_cast<size_t>(p)]);
  });
  const int64_t results = t.images * t.groups * t.outputs * t.out_slices;
#pragma omp parallel for
  for (int64_t r = 0; r < results; ++r) {
    const int64_t slice = r % t.out_slices, channel = r / t.out_slices % t.outputs;
    const int64_t image_group = r / t.out_slices / t.outputs;
    const int64_t filter = (image_group % t.groups * t.outputs + channel) * t.inputs;
    std::vector<double> squares(static_cast<size_t>(tiles), 0);
    for (int64_t c = 0; c < t.inputs; ++c)
      for (int64_t k = 0; k < t.slice_taps; ++k) {
        const int64_t in_slice = slice + k - t.slices_before;
        if (in_slice < 0 || in_slice >= t.in_slices) continue;
        const auto& largest =
            patches[static_cast<size_t>((image_group * t.inputs + c) * t.in_slices + in_slice)];
        const double norm = norms[static_cast<size_t>((filter + c) * t.slice_taps + k)];
        for (size_t tile = 0; tile < squares.size(); ++tile)
          squares[tile] += largest[tile] * largest[tile] * norm;
      }
    double* to = sizes.data<double>() + r * t.out_height * t.out_width;
    for (int64_t y = 0; y < t.out_height; ++y)
      for (int64_t x = 0; x < t.out_width; ++x)
        *to++ = std::sqrt(squares[static_cast<size_t>(y / t.side * t.columns + x / t.side)]);
  }
  return sizes;
}

}  // namespace collage
