// image.resize1d/2d/3d on data NC…: nearest neighbour, linear and cubic, with the coordinate
// transformations and roundings of ONNX Resize (Relay's are among them). `scales` (per spatial
// dimension) enters the coordinates as given; empty: output extent over input extent. `roi`
// (starts, then ends, normalised) is for tf_crop_and_resize.
#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/families.h"
#include "ops/window.h"

namespace collage {

namespace {

struct Scaling {
  int64_t input, output;  // extents
  double scale;
};

// Where element `at` of the output lies in the input, along spatial dimension `dim` of `spatial`.
double source_coordinate(const Attrs& attrs, size_t dim, size_t spatial, const Scaling& scaling,
                         int64_t at) {
  const auto [input, output, scale] = scaling;
  const std::string& mode = attrs.string("coordinate_transformation_mode");
  const auto x = static_cast<double>(at), in = static_cast<double>(input);
  const auto out = static_cast<double>(output);
  if (mode == "align_corners") return output == 1 ? 0.0 : x * (in - 1) / (out - 1);
  if (mode == "asymmetric") return x / scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (mode == "pytorch_half_pixel") return output > 1 ? (x + 0.5) / scale - 0.5 : 0.0;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = out / (scale * in), centre = in / 2;
    return centre * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    const auto& roi = std::get<std::vector<double>>(*attrs.find("roi"));
    const double begin = roi[dim], end = roi[dim + spatial];
    if (output == 1) return 0.5 * (begin + end) * (in - 1);
    return begin * (in - 1) + x * (end - begin) * (in - 1) / (out - 1);
  }
  return (x + 0.5) / scale - 0.5;  // half_pixel
}

int64_t nearest(const std::string& rounding, double x) {
  if (rounding == "floor") return static_cast<int64_t>(std::floor(x));
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (rounding == "round" || rounding == "round_prefer_ceil")
    return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));  // round_prefer_floor
}

double linear_weight(double distance) { return std::max(0.0, 1.0 - std::abs(distance)); }

double cubic_weight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

std::vector<ResizeTap> taps_at(const Attrs& attrs, int64_t input, double scale, double x) {
  const std::string& method = attrs.string("method");
  auto clamp = [input](int64_t i) { return std::clamp<int64_t>(i, 0, input - 1); };
  if (method == "nearest_neighbor")
    return {{clamp(nearest(attrs.string("rounding_method"), x)), 1.0}};
  const bool cubic = method == "cubic";
  // Shrinking with antialias widens the filter by the factor of shrinking.
  const double width = attrs.flag("antialias") ? std::max(1.0, 1.0 / scale) : 1.0;
  const double reach = (cubic ? 2.0 : 1.0) * width;
  const auto first = static_cast<int64_t>(std::floor(x - reach)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(x + reach)) - 1;
  const bool exclude = cubic ? attrs.flag("cubic_exclude") : false;
  std::vector<ResizeTap> taps;
  double sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    const double distance = (static_cast<double>(i) - x) / width;
    double weight =
        cubic ? cubic_weight(distance, attrs.real("cubic_alpha")) : linear_weight(distance);
    if (exclude && (i < 0 || i >= input)) weight = 0;
    if (weight == 0) continue;
    sum += weight;
    taps.push_back({clamp(i), weight});
  }
  if (sum != 0)
    for (ResizeTap& tap : taps) tap.weight /= sum;
  return taps;
}

const std::vector<double>& reals(const Attrs& attrs, std::string_view name) {
  return std::get<std::vector<double>>(*attrs.find(name));
}

Result<Type> infer_resize(Types args, const Attrs& attrs, size_t spatial) {
  TensorType data = TRY(tensor_arg(args, 0));
  TRY(require_number(data, "data"));
  TRY(require_rank(data, static_cast<int64_t>(spatial) + 2, "data"));
  const std::string& mode = attrs.string("coordinate_transformation_mode");
  TRY(require_one_of(attrs.string("method"), {"nearest_neighbor", "linear", "cubic"}, "method"));
  TRY(require_one_of(mode,
                     {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"},
                     "coordinate_transformation_mode"));
  TRY(require_one_of(attrs.string("rounding_method"),
                     {"", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"},
                     "rounding_method"));
  const Ints& size = attrs.ints("size");
  if (size.size() != spatial) return bad_model("size has {} entries, not {}", size.size(), spatial);
  const auto &scales = reals(attrs, "scales"), &roi = reals(attrs, "roi");
  if (!scales.empty() && scales.size() != spatial)
    return bad_model("scales has {} entries, not {}", scales.size(), spatial);
  // Keeps source coordinates and filter widths well inside the range of int64.
  for (double scale : scales)
    if (!(scale >= 1e-6 && scale <= 1e9)) return bad_model("scale {} is out of range", scale);
  if (mode == "tf_crop_and_resize" && roi.size() != 2 * spatial)
    return bad_model("roi has {} entries, not {}", roi.size(), 2 * spatial);
  for (double value : roi)
    if (!(std::abs(value) <= 1e6)) return bad_model("roi {} is out of range", value);
  for (size_t d = 0; d < spatial; ++d) {
    if (size[d] < 0 || size[d] > int64_t{1} << 40)
      return bad_model("size {} is out of range", size[d]);
    if (size[d] > 0 && data.shape[d + 2] == 0)
      return bad_model("data {} has nothing to resize", shape_to_string(data.shape));
    data.shape[d + 2] = size[d];
  }
  return tensor_result(data.shape, data.dtype);
}

// One axis: rows of `inner` contiguous elements are combined.
void resize_along(const double* from, double* to, int64_t outer, int64_t input, int64_t inner,
                  const ResizeAxis& axis) {
  const auto output = static_cast<int64_t>(axis.size());
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < outer * output; ++row) {
    double* y = to + row * inner;
    std::fill(y, y + inner, 0.0);
    for (const ResizeTap& tap : axis[static_cast<size_t>(row % output)]) {
      const double* x = from + (row / output * input + tap.source) * inner;
      for (int64_t i = 0; i < inner; ++i) y[i] += tap.weight * x[i];
    }
  }
}

template <typename T>
T round_to(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    value = std::nearbyint(value);
    if (!(value > static_cast<double>(std::numeric_limits<T>::min())))
      return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  }
}

// Nearest neighbour only moves elements, of any type.
template <typename T>
void resize_nearest(const Tensor& in, Tensor& out, const std::vector<ResizeAxis>& axes, T outside) {
  const Shape& shape = out.shape();
  const auto width = shape.back();
  const int64_t rows = out.size() / width;
#pragma omp parallel for schedule(static) if (out.size() > 8192)
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row, base = 0, stride = in.shape().back();
    bool inside = true;
    for (size_t d = shape.size() - 1; d-- > 0;) {
      int64_t at = rest % shape[d];
      rest /= shape[d];
      if (d >= 2) {
        const auto& taps = axes[d - 2][static_cast<size_t>(at)];
        inside = inside && !taps.empty();
        at = taps.empty() ? 0 : taps[0].source;
      }
      base += at * stride;
      stride *= in.shape()[d];
    }
    const T* x = in.data<T>() + base;
    T* y = out.data<T>() + row * width;
    for (int64_t i = 0; i < width; ++i) {
      const auto& taps = axes.back()[static_cast<size_t>(i)];
      y[i] = inside && !taps.empty() ? x[taps[0].source] : outside;
    }
  }
}

Status run_resize(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs,
                  size_t spatial) {
  const Tensor& in = inputs[0];
  Tensor& out = outputs[0];
  if (out.size() == 0) return {};
  std::vector<ResizeAxis> axes;
  for (size_t d = 0; d < spatial; ++d)
    axes.push_back(resize_axis(attrs, d, spatial, in.shape()[d + 2]));
  const double outside = attrs.real("extrapolation_value");
  if (attrs.string("method") == "nearest_neighbor") {
    dispatch_number(out.dtype(), [&]<typename T>(Tag<T>) {
      resize_nearest<T>(in, out, axes, round_to<T>(outside));
    });
    return {};
  }
  Tensor values = TRY(Tensor::allocate(DType::kFloat64, in.shape()));
  dispatch_number(in.dtype(), [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < in.size(); ++i)
      values.data<double>()[i] = static_cast<double>(in.data<T>()[i]);
  });
  Shape shape = in.shape();
  for (size_t d = 0; d < spatial; ++d) {
    const auto dim = static_cast<int64_t>(d + 2);
    const int64_t input = shape[d + 2];
    shape[d + 2] = out.shape()[d + 2];
    Tensor next = TRY(Tensor::allocate(DType::kFloat64, shape));
    resize_along(values.data<double>(), next.data<double>(), extent_product(shape, 0, dim), input,
                 extent_product(shape, dim + 1, static_cast<int64_t>(shape.size())), axes[d]);
    values = std::move(next);
  }
  dispatch_number(out.dtype(), [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < out.size(); ++i) {
      bool inside = true;
      int64_t rest = i;
      for (size_t d = spatial; d-- > 0;) {
        inside = inside && !axes[d][static_cast<size_t>(rest % shape[d + 2])].empty();
        rest /= shape[d + 2];
      }
      out.data<T>()[i] = round_to<T>(inside ? values.data<double>()[i] : outside);
    }
  });
  return {};
}

}  // namespace

ResizeAxis resize_axis(const Attrs& attrs, size_t dim, size_t spatial, int64_t input) {
  const int64_t output = attrs.ints("size")[dim];
  const auto& scales = reals(attrs, "scales");
  const double scale =
      scales.empty() ? static_cast<double>(output) / static_cast<double>(input) : scales[dim];
  const bool crop = attrs.string("coordinate_transformation_mode") == "tf_crop_and_resize";
  ResizeAxis axis(static_cast<size_t>(output));
  for (int64_t i = 0; i < output; ++i) {
    const double x = source_coordinate(attrs, dim, spatial, {input, output, scale}, i);
    if (crop && (x < 0 || x > static_cast<double>(input - 1))) continue;
    axis[static_cast<size_t>(i)] = taps_at(attrs, input, scale, x);
  }
  return axis;
}

std::optional<Ints> repeat_factors(const CallNode& call) {
  if (call.op == nullptr || !call.op->name.starts_with("image.resize") ||
      call.attrs.string("method") != "nearest_neighbor")
    return std::nullopt;
  const Shape& from = call.args[0]->tensor_type().shape;
  const size_t spatial = from.size() - 2;
  Ints factors;
  for (size_t d = 0; d < spatial; ++d) {
    const ResizeAxis axis = resize_axis(call.attrs, d, spatial, from[d + 2]);
    const auto extent = static_cast<int64_t>(axis.size());
    if (extent == 0 || extent % from[d + 2] != 0) return std::nullopt;
    const int64_t factor = extent / from[d + 2];
    for (int64_t i = 0; i < extent; ++i) {
      const std::vector<ResizeTap>& taps = axis[static_cast<size_t>(i)];
      if (taps.size() != 1 || taps[0].source != i / factor) return std::nullopt;
    }
    factors.push_back(factor);
  }
  return factors;
}

void register_resize_ops() {
  for (size_t spatial = 1; spatial <= 3; ++spatial) {
    OpDef op;
    op.name = spatial_name("image.resize", spatial);
    op.attrs = {{"size", Ints{}, true},
                {"scales", std::vector<double>{}},
                {"roi", std::vector<double>{}},
                {"method", std::string("linear")},
                {"coordinate_transformation_mode", std::string("half_pixel")},
                {"rounding_method", std::string()},
                {"cubic_alpha", -0.75},
                {"cubic_exclude", false},
                {"extrapolation_value", 0.0},
                {"antialias", false}};
    op.kind = FusionKind::kInjective;
    op.infer_type = [spatial](Types args, const Attrs& attrs) {
      return infer_resize(args, attrs, spatial);
    };
    op.reference = with_halves(
        [spatial](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
          return run_resize(inputs, attrs, outputs, spatial);
        });
    register_op(std::move(op));
  }
}

}  // namespace collage
