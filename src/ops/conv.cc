// nn.conv1d/2d/3d (weights OI…) and nn.conv1d/2d/3d_transpose (weights IO…), plain layouts, no
// bias. Both are matrix products of the weights with a matrix of shifted inputs that exists only
// panel by panel: one row per (input channel, tap), one column per output position. A transposed
// convolution is a product for each remainder of output positions by its strides.
#include <array>
#include <vector>

#include "base/integers.h"
#include "ops/families.h"
#include "ops/product.h"
#include "ops/window.h"

namespace collage {

namespace {

// Channel counts and the checks common to both directions.
struct Channels {
  int64_t groups, inputs, outputs;  // of the whole call
};

Status check_hint(const Attrs& attrs, std::string_view name, const Ints& actual) {
  std::optional<Ints> given = TRY(optional_ints(attrs, name));
  if (given && *given != actual)
    return bad_model("{} {} does not fit the weights ({})", name, attr_to_string(*given),
                     attr_to_string(actual));
  return {};
}

Result<Channels> check_channels(const TensorType& data, const TensorType& weight,
                                const Attrs& attrs, int64_t spatial, bool transposed) {
  TRY(require_rank(data, spatial + 2, "data"));
  TRY(require_rank(weight, spatial + 2, "weight"));
  TRY(require_float(data, "data"));
  TRY(require_same_dtype(data, weight));
  Channels channels{attrs.integer("groups"), data.shape[1], 0};
  if (channels.groups < 1) return bad_model("groups {} is not positive", channels.groups);
  if (channels.inputs % channels.groups != 0)
    return bad_model("{} input channels do not divide into {} groups", channels.inputs,
                     channels.groups);
  if (transposed) {
    if (weight.shape[0] != channels.inputs)
      return bad_model("weight {} does not fit {} input channels", shape_to_string(weight.shape),
                       channels.inputs);
    channels.outputs = TRY(checked_multiply(weight.shape[1], channels.groups, "output channels"));
  } else {
    if (weight.shape[1] != channels.inputs / channels.groups)
      return bad_model("weight {} does not fit {} input channels in {} groups",
                       shape_to_string(weight.shape), channels.inputs, channels.groups);
    channels.outputs = weight.shape[0];
    if (channels.outputs % channels.groups != 0)
      return bad_model("{} output channels do not divide into {} groups", channels.outputs,
                       channels.groups);
  }
  TRY(check_hint(attrs, "channels", {channels.outputs}));
  TRY(check_hint(attrs, "kernel_size", {weight.shape.begin() + 2, weight.shape.end()}));
  return channels;
}

Result<Type> infer_conv(Types args, const Attrs& attrs, int64_t spatial) {
  TensorType data = TRY(tensor_arg(args, 0)), weight = TRY(tensor_arg(args, 1));
  Channels channels = TRY(check_channels(data, weight, attrs, spatial, false));
  Window window = TRY(make_window(attrs, {weight.shape.begin() + 2, weight.shape.end()}));
  Shape shape = {data.shape[0], channels.outputs};
  for (size_t d = 0; d < window.rank(); ++d)
    shape.push_back(TRY(window_positions(window, d, data.shape[d + 2], false)));
  return tensor_result(std::move(shape), data.dtype);
}

Result<Type> infer_conv_transpose(Types args, const Attrs& attrs, int64_t spatial) {
  TensorType data = TRY(tensor_arg(args, 0)), weight = TRY(tensor_arg(args, 1));
  Channels channels = TRY(check_channels(data, weight, attrs, spatial, true));
  Window window = TRY(make_window(attrs, {weight.shape.begin() + 2, weight.shape.end()}));
  const Ints& extra = attrs.ints("output_padding");
  if (extra.size() != window.rank())
    return bad_model("output_padding has {} entries, not {}", extra.size(), window.rank());
  Shape shape = {data.shape[0], channels.outputs};
  for (size_t d = 0; d < window.rank(); ++d) {
    if (extra[d] < 0 || extra[d] >= std::max(window.strides[d], window.dilation[d]))
      return bad_model("output_padding {} is out of range", extra[d]);
    using Wide = __int128;
    Wide extent = (Wide{data.shape[d + 2]} - 1) * window.strides[d] +
                  Wide{window.dilation[d]} * (window.kernel[d] - 1) + 1 + extra[d] -
                  window.pad_begin[d] - window.pad_end[d];
    if (data.shape[d + 2] == 0) extent = 0;
    if (extent < 0 || extent > (Wide{1} << 61))
      return bad_model("the output extent of spatial dimension {} is out of range", d);
    shape.push_back(static_cast<int64_t>(extent));
  }
  return tensor_result(std::move(shape), data.dtype);
}

// Some output positions along one axis, and the taps that read an input position there: output
// first + i·step reads input i·stride + shifts[t] by tap taps[t], where that lies within the input.
struct Axis {
  int64_t first = 0, step = 1, count = 1;
  int64_t stride = 1, input = 1;
  std::vector<int64_t> taps = {0}, shifts = {0};

  // -1 outside the input.
  int64_t source(int64_t i, int64_t t) const {
    const int64_t at = i * stride + shifts[static_cast<size_t>(t)];
    return at < 0 || at >= input ? -1 : at;
  }
  int64_t num_taps() const { return static_cast<int64_t>(taps.size()); }
};

// All output positions of spatial dimension d. Those of a transposed convolution that are equal
// modulo its stride read by the same taps, and neighbours read neighbours.
std::vector<Axis> axes(const Window& window, size_t d, int64_t input, int64_t output,
                       bool transposed) {
  const int64_t stride = window.strides[d], dilation = window.dilation[d];
  const int64_t pad = window.pad_begin[d];
  std::vector<Axis> result;
  for (int64_t phase = 0; phase < (transposed ? std::min(stride, output) : 1); ++phase) {
    Axis axis{phase, 1, output, stride, input, {}, {}};
    if (transposed) {
      axis.step = stride;
      axis.count = ceil_div(output - phase, stride);
      axis.stride = 1;
    }
    for (int64_t tap = 0; tap < window.kernel[d]; ++tap) {
      const int64_t from = transposed ? phase + pad - tap * dilation : tap * dilation - pad;
      if (transposed && from % stride != 0) continue;
      axis.taps.push_back(tap);
      axis.shifts.push_back(transposed ? from / stride : from);
    }
    result.push_back(std::move(axis));
  }
  return result;
}

// The three spatial axes, absent leading ones of extent 1.
struct Geometry {
  Axis depth, height, width;
  int64_t taps() const { return depth.num_taps() * height.num_taps() * width.num_taps(); }
  int64_t inputs() const { return depth.input * height.input * width.input; }
  int64_t outputs() const { return depth.count * height.count * width.count; }

  // Calls f(d, h, i, n, at) for each row of output positions among [begin, begin + count): it has n
  // of them from i along the width, `at` behind begin.
  template <typename F>
  void for_each_row(int64_t begin, int64_t count, F f) const {
    for (int64_t at = 0; at < count;) {
      const int64_t i = (begin + at) % width.count, row = (begin + at) / width.count;
      const int64_t n = std::min(count - at, width.count - i);
      f(row / height.count, row % height.count, i, n, at);
      at += n;
    }
  }
};

// One row of the shifted-input matrix: output positions [begin, begin + count) for one tap.
template <typename T>
void fill_row(const Geometry& g, const T* channel, int64_t tap, int64_t begin, int64_t count,
              double* to) {
  const int64_t tap_w = tap % g.width.num_taps();
  const int64_t tap_h = tap / g.width.num_taps() % g.height.num_taps();
  const int64_t tap_d = tap / g.width.num_taps() / g.height.num_taps();
  const int64_t shift = g.width.shifts[static_cast<size_t>(tap_w)];
  g.for_each_row(begin, count, [&](int64_t d, int64_t h, int64_t i, int64_t n, int64_t at) {
    double* row = to + at;
    const int64_t from_d = g.depth.source(d, tap_d), from_h = g.height.source(h, tap_h);
    if (from_d < 0 || from_h < 0) {
      std::fill(row, row + n, 0.0);
      return;
    }
    const T* line = channel + (from_d * g.height.input + from_h) * g.width.input;
    if (g.width.stride != 1) {
      for (int64_t k = 0; k < n; ++k) {
        const int64_t from = g.width.source(i + k, tap_w);
        row[k] = from < 0 ? 0.0 : static_cast<double>(line[from]);
      }
      return;
    }
    const int64_t first = std::clamp(-shift, i, i + n);
    const int64_t last = std::clamp(g.width.input - shift, first, i + n);
    std::fill(row, row + (first - i), 0.0);
#pragma omp simd
    for (int64_t k = first; k < last; ++k) row[k - i] = static_cast<double>(line[k + shift]);
    std::fill(row + (last - i), row + n, 0.0);
  });
}

template <typename T>
Status run_conv(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs,
                bool transposed) {
  const Tensor &data = inputs[0], &weight = inputs[1];
  Tensor& out = outputs[0];
  if (out.size() == 0) return {};
  const Window window = known_window(attrs, {weight.shape().begin() + 2, weight.shape().end()});
  const int64_t groups = attrs.integer("groups");
  const int64_t in_channels = data.shape()[1] / groups, out_channels = out.shape()[1] / groups;
  const T* w = weight.data<T>();
  const T* x = data.data<T>();
  T* y = out.data<T>();
  std::array<std::vector<Axis>, 3> all = {{{Axis()}, {Axis()}, {Axis()}}};
  Ints kernel(3, 1), extents(3, 1);  // of the weights and of the output
  for (size_t d = 0, at = 3 - window.rank(); d < window.rank(); ++d, ++at) {
    kernel[at] = window.kernel[d];
    extents[at] = out.shape()[d + 2];
    all[at] = axes(window, d, data.shape()[d + 2], extents[at], transposed);
  }
  const int64_t all_taps = kernel[0] * kernel[1] * kernel[2];
  const int64_t plane = extents[0] * extents[1] * extents[2];

  const auto run = [&](const Geometry& geometry) {
    const Axis &depth = geometry.depth, &height = geometry.height, &width = geometry.width;
    const int64_t taps = geometry.taps();
    std::vector<int64_t> tap_of;  // in the weights
    for (int64_t d : depth.taps)
      for (int64_t h : height.taps)
        for (int64_t tap : width.taps) tap_of.push_back((d * kernel[1] + h) * kernel[2] + tap);
    const Product product{data.shape()[0] * groups, out_channels, geometry.outputs(),
                          in_channels * taps};
    FillPanel weights;
    if (!transposed) {
      weights = strided_panel(
          w, [=](int64_t batch) { return batch % groups * out_channels * in_channels * taps; },
          product.k, 1);
    } else {  // row: output channel; column: (input channel, tap)
      weights = [&](int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                    double* to, int64_t stride) {
        const T* group = w + batch % groups * in_channels * out_channels * all_taps;
        for (int64_t c = 0; c < columns; ++c) {
          const T* from = group + (column + c) / taps * out_channels * all_taps +
                          tap_of[static_cast<size_t>((column + c) % taps)];
          for (int64_t r = 0; r < rows; ++r)
            to[r * stride + c] = static_cast<double>(from[(row + r) * all_taps]);
        }
      };
    }
    const FillPanel shifted = [&](int64_t batch, int64_t row, int64_t rows, int64_t column,
                                  int64_t columns, double* to, int64_t stride) {
      const T* group = x + batch * in_channels * geometry.inputs();
      for (int64_t r = 0; r < rows; ++r)
        fill_row(geometry, group + (row + r) / taps * geometry.inputs(), (row + r) % taps, column,
                 columns, to + r * stride);
    };
    const StoreBlock scatter = [&](int64_t batch, int64_t row, int64_t rows, int64_t column,
                                   int64_t columns, const double* from, int64_t stride) {
      geometry.for_each_row(
          column, columns, [&](int64_t d, int64_t h, int64_t i, int64_t n, int64_t at) {
            const int64_t line =
                ((depth.first + d * depth.step) * extents[1] + height.first + h * height.step) *
                extents[2];
            for (int64_t r = 0; r < rows; ++r) {
              T* to = y + (batch * out_channels + row + r) * plane + line + width.first +
                      i * width.step;
              for (int64_t k = 0; k < n; ++k)
                to[k * width.step] = static_cast<T>(from[r * stride + at + k]);
            }
          });
    };
    blocked_product(product, weights, shifted,
                    geometry.outputs() == plane ? dense_store(y, product.m, product.n) : scatter);
  };
  for (const Axis& depth : all[0])
    for (const Axis& height : all[1])
      for (const Axis& width : all[2]) run({depth, height, width});
  return {};
}

OpDef conv_op(size_t spatial, bool transposed) {
  OpDef op;
  op.name = spatial_name("nn.conv", spatial, transposed ? "d_transpose" : "d");
  op.min_args = op.max_args = 2;
  op.attrs = {{"strides", Ints(spatial, 1)},  {"padding", Ints(2 * spatial, 0)},
              {"dilation", Ints(spatial, 1)}, {"groups", int64_t{1}},
              {"channels", None{}},           {"kernel_size", None{}}};
  if (transposed) op.attrs.push_back({"output_padding", Ints(spatial, 0)});
  op.kind = FusionKind::kAnchor;
  op.infer_type = [spatial, transposed](Types args, const Attrs& attrs) {
    auto n = static_cast<int64_t>(spatial);
    return transposed ? infer_conv_transpose(args, attrs, n) : infer_conv(args, attrs, n);
  };
  op.reference = with_halves(
      [transposed](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
        return dispatch_float(outputs[0].dtype(), [&]<typename T>(Tag<T>) {
          return run_conv<T>(inputs, attrs, outputs, transposed);
        });
      });
  // Per output element (per input element when transposed): one multiply-add per weight it meets.
  op.flops = [transposed](Types args, const Attrs&, const Type& result) {
    const Shape& weight = args[1].tensor().shape;
    const Shape& pixels = transposed ? args[0].tensor().shape : result.tensor().shape;
    return 2.0 * static_cast<double>(num_elements(pixels)) *
           static_cast<double>(extent_product(weight, 1, static_cast<int64_t>(weight.size())));
  };
  return op;
}

}  // namespace

void register_conv_ops() {
  for (size_t spatial = 1; spatial <= 3; ++spatial)
    for (bool transposed : {false, true}) register_op(conv_op(spatial, transposed));
}

}  // namespace collage
