// Operators that read an image between its pixels, at places that are computed:
//
//   image.grid_sample(data, grid)    ONNX GridSample: data (N, C, spatial…), grid (N, places…,
//   dims) nn.deformable_conv(data, weight, offset[, mask])   ONNX DeformConv without bias: a
//   convolution
//     whose taps are moved at every position of the window, (N, groups · taps · dims, positions…),
//     and weighted
//
// Any place is allowed. One that is NaN lies outside of an image with zeros beyond it, else it
// gives NaN, or the first pixel where the nearest one is read; one that is infinite lies as far out
// as can be, and is none after reflection. What lies outside adds nothing, whatever stands at the
// edge.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/families.h"
#include "ops/product.h"
#include "ops/window.h"

namespace collage {

namespace {

enum class Beyond { kZeros, kBorder, kReflection };  // what is read outside of the image

constexpr size_t kMostDims = 3;

// A pixel of the flattened image, and its weight.
struct WeightedPixel {
  int64_t at;
  double weight;
};

class Sampler {
 public:
  Sampler(std::string_view method, Beyond beyond, bool align_corners, Ints extents)
      : taps_(method == "nearest"  ? 1
              : method == "linear" ? 2
                                   : 4),
        beyond_(beyond),
        align_corners_(align_corners),
        extents_(std::move(extents)) {}

  // Appends what is read at a place in pixels, 0 the centre of the first, the last dimension last.
  void read(const double* place, std::vector<WeightedPixel>& to) const {
    std::array<std::array<Tap, 4>, kMostDims> axes;
    for (size_t d = 0; d < extents_.size(); ++d) axes[d] = taps(place[d], extents_[d]);
    append(axes, 0, {0, 1}, to);
  }

 private:
  struct Tap {
    int64_t at = 0;
    double weight = 1;
    bool inside = true;
  };

  // x by mirrors at both ends of the image: at the outermost centres, or at the edges.
  double reflected(double x, double extent) const {
    const double low = align_corners_ ? 0 : -0.5, range = align_corners_ ? extent - 1 : extent;
    if (range == 0) return x * 0;
    const double distance = std::abs(x - low);
    const double rest = distance - std::floor(distance / (2 * range)) * (2 * range);
    return std::min(rest, 2 * range - rest) + low;
  }

  // x is a whole number, or none.
  Tap tap(double x, double weight, int64_t extent) const {
    if (beyond_ == Beyond::kReflection) x = reflected(x, static_cast<double>(extent));
    const double pixel = std::clamp(x, 0.0, static_cast<double>(extent - 1));
    return {std::isnan(pixel) ? 0 : static_cast<int64_t>(pixel), weight,
            beyond_ != Beyond::kZeros || pixel == x};
  }

  // Keys' cubic convolution with a = -0.75.
  static double cubic_weight(double distance) {
    constexpr double kA = -0.75;
    const double d = std::abs(distance);
    return d <= 1 ? ((kA + 2) * d - (kA + 3)) * d * d + 1
                  : ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
  }

  std::array<Tap, 4> taps(double x, int64_t extent) const {
    if (taps_ == 1) return {tap(std::nearbyint(x), 1, extent)};
    // Places farther out than taps reach read the same, and an infinite one has no distance.
    const double reach = taps_ == 4 ? 2 : 0;
    if (beyond_ == Beyond::kBorder)
      x = std::clamp(x, -reach, static_cast<double>(extent - 1) + reach);
    const double first = std::floor(x), after = x - first;
    if (taps_ == 2) return {tap(first, 1 - after, extent), tap(first + 1, after, extent)};
    return {tap(first - 1, cubic_weight(after + 1), extent),
            tap(first, cubic_weight(after), extent),
            tap(first + 1, cubic_weight(1 - after), extent),
            tap(first + 2, cubic_weight(2 - after), extent)};
  }

  // Every combination of a tap for each axis.
  void append(const std::array<std::array<Tap, 4>, kMostDims>& axes, size_t d, WeightedPixel so_far,
              std::vector<WeightedPixel>& to) const {
    if (d == extents_.size()) {
      to.push_back(so_far);
      return;
    }
    for (size_t i = 0; i < taps_; ++i)
      if (const Tap& tap = axes[d][i]; tap.inside)
        append(axes, d + 1, {so_far.at * extents_[d] + tap.at, so_far.weight * tap.weight}, to);
  }

  size_t taps_;
  Beyond beyond_;
  bool align_corners_;
  Ints extents_;
};

// What is read at several places, one after the other.
struct Readings {
  std::vector<WeightedPixel> pixels;
  std::vector<size_t> ends;  // of each place

  void add(const Sampler& sampler, const double* place) {
    sampler.read(place, pixels);
    ends.push_back(pixels.size());
  }
  // to[i] = value(i, the sum at place i)
  template <typename T, typename Value>
  void sum(const T* image, const Value& value) const {
    size_t at = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      double total = 0;
      for (; at < ends[i]; ++at)
        total += pixels[at].weight * static_cast<double>(image[pixels[at].at]);
      value(static_cast<int64_t>(i), total);
    }
  }
};

Ints spatial_extents(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Status check_image(const TensorType& data) {
  TRY(require_float(data, "data"));
  if (data.shape.size() < 3 || data.shape.size() > 2 + kMostDims)
    return bad_model("data {} has no 1 to 3 spatial dimensions", shape_to_string(data.shape));
  if (num_elements(spatial_extents(data.shape)) == 0)
    return bad_model("data {} has no pixels", shape_to_string(data.shape));
  return {};
}

Result<Type> infer_grid_sample(Types args, const Attrs& attrs) {
  const TensorType data = TRY(tensor_arg(args, 0)), grid = TRY(tensor_arg(args, 1));
  TRY(check_image(data));
  TRY(require_same_dtype(data, grid));
  TRY(require_one_of(attrs.string("method"), {"nearest", "linear", "cubic"}, "method"));
  TRY(require_one_of(attrs.string("padding_mode"), {"zeros", "border", "reflection"},
                     "padding_mode"));
  if (grid.shape.size() != data.shape.size() || grid.shape[0] != data.shape[0] ||
      grid.shape.back() != static_cast<int64_t>(data.shape.size()) - 2)
    return bad_model("a grid of shape {} for data of shape {}", shape_to_string(grid.shape),
                     shape_to_string(data.shape));
  Shape shape = {data.shape[0], data.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return tensor_result(std::move(shape), data.dtype);
}

Status run_grid_sample(std::span<const Tensor> inputs, const Attrs& attrs,
                       std::span<Tensor> outputs) {
  if (outputs[0].size() == 0) return {};
  const Shape &data = inputs[0].shape(), &result = outputs[0].shape();
  const Ints extents = spatial_extents(data);
  const size_t dims = extents.size();
  const std::string& padding = attrs.string("padding_mode");
  const bool corners = attrs.flag("align_corners");
  const Sampler sampler(attrs.string("method"),
                        padding == "zeros"    ? Beyond::kZeros
                        : padding == "border" ? Beyond::kBorder
                                              : Beyond::kReflection,
                        corners, extents);
  const int64_t channels = data[1], pixels = num_elements(extents);
  const int64_t places = num_elements(spatial_extents(result));
  constexpr int64_t kAtOnce = 512;
  const int64_t parts = (places + kAtOnce - 1) / kAtOnce;
  dispatch_float(inputs[0].dtype(), [&]<typename T>(Tag<T>) {
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < data[0] * parts; ++task) {
      const int64_t batch = task / parts, first = task % parts * kAtOnce;
      Readings readings;
      for (int64_t i = first; i < std::min(places, first + kAtOnce); ++i) {
        const T* grid =
            inputs[1].data<T>() + (batch * places + i) * static_cast<int64_t>(dims);  // x first
        std::array<double, kMostDims> place{};
        for (size_t d = 0; d < dims; ++d) {
          const auto extent = static_cast<double>(extents[d]);
          const double x = static_cast<double>(grid[dims - 1 - d]) + 1;
          place[d] = corners ? x * (extent - 1) / 2 : x * extent / 2 - 0.5;
        }
        readings.add(sampler, place.data());
      }
      for (int64_t c = batch * channels; c < (batch + 1) * channels; ++c) {
        T* to = outputs[0].data<T>() + c * places + first;
        readings.sum(inputs[0].data<T>() + c * pixels,
                     [&](int64_t i, double value) { to[i] = static_cast<T>(value); });
      }
    }
  });
  return {};
}

// A product and a sum a pixel that is read.
double grid_sample_work(Types args, const Attrs& attrs, const Type& result) {
  const std::string& method = attrs.string("method");
  const double taps = method == "nearest" ? 1 : method == "linear" ? 2 : 4;
  return 2 * std::pow(taps, static_cast<double>(args[0].tensor().shape.size()) - 2) *
         static_cast<double>(num_elements(result.tensor().shape));
}

Result<Type> infer_deformable(Types args, const Attrs& attrs) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < args.size(); ++i) types.push_back(TRY(tensor_arg(args, i)));
  const Shape &data = types[0].shape, &weight = types[1].shape;
  TRY(check_image(types[0]));
  TRY(require_rank(types[1], static_cast<int64_t>(data.size()), "weight"));
  const int64_t groups = attrs.integer("groups"), offset_groups = attrs.integer("offset_groups");
  if (groups < 1 || data[1] % groups != 0 || weight[1] != data[1] / groups ||
      weight[0] % groups != 0)
    return bad_model("groups {} does not fit {} channels and a weight of shape {}", groups, data[1],
                     shape_to_string(weight));
  if (offset_groups < 1 || data[1] % offset_groups != 0)
    return bad_model("offset_groups {} does not divide {} channels", offset_groups, data[1]);
  const Window window = TRY(make_window(attrs, spatial_extents(weight)));
  Shape result = {data[0], weight[0]};
  for (size_t d = 0; d < window.rank(); ++d)
    result.push_back(TRY(window_positions(window, d, data[d + 2], false)));
  const int64_t each = TRY(checked_multiply(offset_groups, num_elements(window.kernel), "taps"));
  const int64_t per_place[] = {
      TRY(checked_multiply(each, static_cast<int64_t>(window.rank()), "taps")), each};
  for (size_t i = 1; i < types.size(); ++i) TRY(require_same_dtype(types[0], types[i]));
  for (size_t i = 2; i < types.size(); ++i) {
    Shape shape = result;
    shape[1] = per_place[i - 2];
    TRY(require_shape(types[i], shape, i == 2 ? "offset" : "mask"));
  }
  return tensor_result(std::move(result), types[0].dtype);
}

// A call on one image: part of the positions at a time, columns (channels · taps, positions) are
// read, and multiplied with the weight.
template <typename T>
class Deformed {
 public:
  Deformed(std::span<const Tensor> inputs, const Attrs& attrs, Tensor& output)
      : in_(inputs),
        out_(output),
        window_(known_window(attrs, spatial_extents(inputs[1].shape()))),
        extents_(spatial_extents(inputs[0].shape())),
        positions_(spatial_extents(output.shape())),
        groups_(attrs.integer("groups")),
        offset_groups_(attrs.integer("offset_groups")),
        sampler_("linear", Beyond::kZeros, false, extents_),
        columns_(static_cast<size_t>(channels() * taps() * kAtOnce)) {}

  void run(int64_t batch) {
    const int64_t places = num_elements(positions_), rows = channels() / groups_ * taps();
    const int64_t outputs = out_.shape()[1] / groups_;
    for (int64_t first = 0; first < places; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, places - first);
#pragma omp parallel for schedule(static)
      for (int64_t at = 0; at < offset_groups_ * taps(); ++at)
        read_columns(batch, at / taps(), at % taps(), first, count);
      T* to = out_.data<T>() + batch * out_.shape()[1] * places + first;
      const auto matrix_of = [&](int64_t size) {
        return [size](int64_t group) { return group * size; };
      };
      blocked_product({groups_, outputs, count, rows},
                      strided_panel(in_[1].data<T>(), matrix_of(outputs * rows), rows, 1),
                      strided_panel(columns_.data(), matrix_of(rows * kAtOnce), kAtOnce, 1),
                      [=](int64_t group, int64_t row, int64_t height, int64_t column, int64_t width,
                          const double* from, int64_t stride) {
                        for (int64_t r = 0; r < height; ++r)
                          for (int64_t c = 0; c < width; ++c)
                            to[(group * outputs + row + r) * places + column + c] =
                                static_cast<T>(from[r * stride + c]);
                      });
    }
  }

 private:
  static constexpr int64_t kAtOnce = 256;

  int64_t channels() const { return in_[0].shape()[1]; }
  int64_t taps() const { return num_elements(window_.kernel); }

  // The rows of one tap, of all channels that share its offsets.
  void read_columns(int64_t batch, int64_t group, int64_t tap, int64_t first, int64_t count) {
    const int64_t places = num_elements(positions_), shared = channels() / offset_groups_;
    const auto dims = static_cast<int64_t>(extents_.size());
    const int64_t row = (batch * offset_groups_ + group) * taps() + tap;
    const T* offset = in_[2].data<T>() + row * dims * places;
    const T* mask = in_.size() > 3 ? in_[3].data<T>() + row * places : nullptr;
    Readings readings;
    for (int64_t i = first; i < first + count; ++i) {
      std::array<double, kMostDims> place{};
      int64_t position = i, of_tap = tap;
      for (size_t d = extents_.size(); d-- > 0;) {
        place[d] = static_cast<double>(position % positions_[d] * window_.strides[d] +
                                       of_tap % window_.kernel[d] * window_.dilation[d] -
                                       window_.pad_begin[d]) +
                   static_cast<double>(offset[static_cast<int64_t>(d) * places + i]);
        position /= positions_[d];
        of_tap /= window_.kernel[d];
      }
      readings.add(sampler_, place.data());
    }
    const int64_t pixels = num_elements(extents_);
    for (int64_t c = group * shared; c < (group + 1) * shared; ++c) {
      double* to = columns_.data() + (c * taps() + tap) * kAtOnce;
      readings.sum(in_[0].data<T>() + (batch * channels() + c) * pixels,
                   [&](int64_t i, double value) {
                     to[i] = mask == nullptr ? value : value * static_cast<double>(mask[first + i]);
                   });
    }
  }

  std::span<const Tensor> in_;
  Tensor& out_;
  Window window_;
  Ints extents_, positions_;
  int64_t groups_, offset_groups_;
  Sampler sampler_;
  std::vector<double> columns_;
};

Status run_deformable(std::span<const Tensor> inputs, const Attrs& attrs,
                      std::span<Tensor> outputs) {
  if (outputs[0].size() == 0) return {};
  dispatch_float(inputs[0].dtype(), [&]<typename T>(Tag<T>) {
    Deformed<T> deformed(inputs, attrs, outputs[0]);
    for (int64_t batch = 0; batch < outputs[0].shape()[0]; ++batch) deformed.run(batch);
  });
  return {};
}

double deformable_work(Types args, const Attrs&, const Type& result) {
  const Shape& weight = args[1].tensor().shape;
  return 2 * static_cast<double>(num_elements(Shape(weight.begin() + 1, weight.end()))) *
         static_cast<double>(num_elements(result.tensor().shape));
}

}  // namespace

void register_sample_ops() {
  register_op(make_op("image.grid_sample", 2,
                      {{"method", std::string("linear")},
                       {"padding_mode", std::string("zeros")},
                       {"align_corners", false}},
                      FusionKind::kOpaque, infer_grid_sample, with_halves(run_grid_sample),
                      grid_sample_work));
  OpDef deformable =
      make_op("nn.deformable_conv", 3,
              {{"strides", Ints{}, true},
               {"padding", Ints{}, true},
               {"dilation", Ints{}, true},
               {"groups", int64_t{1}},
               {"offset_groups", int64_t{1}}},
              FusionKind::kOpaque, infer_deformable, with_halves(run_deformable), deformable_work);
  deformable.max_args = 4;
  register_op(std::move(deformable));
}

}  // namespace collage
