// nn.conv1d/2d/3d (weights OI…) and nn.conv1d/2d/3d_transpose (weights IO…), plain layouts, no
// bias. Both are matrix products of the weights with a matrix of shifted inputs that exists only
// panel by panel: one row per (input channel, tap), one column per output position.
#include <array>

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

// Which input position a tap at an output position reads along one axis, or -1.
struct AxisMap {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0, input = 1, output = 1;
  bool transposed = false;

  int64_t source(int64_t out, int64_t tap) const {
    int64_t at;
    if (transposed) {
      at = out + pad - tap * dilation;
      if (at < 0 || at % stride != 0) return -1;
      at /= stride;
    } else {
      at = out * stride - pad + tap * dilation;
    }
    return at < 0 || at >= input ? -1 : at;
  }
};

// The three spatial axes, absent leading ones of extent 1.
struct Geometry {
  std::array<AxisMap, 3> axis;
  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  int64_t inputs() const { return axis[0].input * axis[1].input * axis[2].input; }
  int64_t outputs() const { return axis[0].output * axis[1].output * axis[2].output; }

  Geometry(const Window& window, const Shape& data, const Shape& out, bool transposed) {
    size_t skip = 3 - window.rank();
    for (size_t d = 0; d < window.rank(); ++d)
      axis[skip + d] = {window.kernel[d],    window.strides[d], window.dilation[d],
                        window.pad_begin[d], data[d + 2],       out[d + 2],
                        transposed};
  }
};

// One row of the shifted-input matrix: output positions [begin, begin + count) for one tap.
template <typename T>
void fill_row(const Geometry& g, const T* channel, int64_t tap, int64_t begin, int64_t count,
              double* to) {
  const auto& [depth, height, width] = g.axis;
  const int64_t tap_w = tap % width.kernel, tap_h = tap / width.kernel % height.kernel;
  const int64_t tap_d = tap / width.kernel / height.kernel;
  while (count > 0) {
    const int64_t w = begin % width.output, h = begin / width.output % height.output;
    const int64_t d = begin / width.output / height.output;
    const int64_t piece = std::min(count, width.output - w);
    const int64_t from_d = depth.source(d, tap_d), from_h = height.source(h, tap_h);
    if (from_d < 0 || from_h < 0) {
      std::fill(to, to + piece, 0.0);
    } else {
      const T* line = channel + (from_d * height.input + from_h) * width.input;
      if (!width.transposed && width.stride == 1) {
        const int64_t shift = tap_w * width.dilation - width.pad;  // source = output + shift
        const int64_t first = std::clamp(-shift, w, w + piece);
        const int64_t last = std::clamp(width.input - shift, first, w + piece);
        std::fill(to, to + (first - w), 0.0);
#pragma omp simd
        for (int64_t i = first; i < last; ++i) to[i - w] = static_cast<double>(line[i + shift]);
        std::fill(to + (last - w), to + piece, 0.0);
      } else {
        for (int64_t i = 0; i < piece; ++i) {
          const int64_t from = width.source(w + i, tap_w);
          to[i] = from < 0 ? 0.0 : static_cast<double>(line[from]);
        }
      }
    }
    to += piece;
    begin += piece;
    count -= piece;
  }
}

template <typename T>
Status run_conv(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs,
                bool transposed) {
  const Tensor &data = inputs[0], &weight = inputs[1];
  Tensor& out = outputs[0];
  if (out.size() == 0) return {};
  const Window window = known_window(attrs, {weight.shape().begin() + 2, weight.shape().end()});
  const Geometry geometry(window, data.shape(), out.shape(), transposed);
  const int64_t groups = attrs.integer("groups");
  const int64_t in_channels = data.shape()[1] / groups, out_channels = out.shape()[1] / groups;
  const int64_t taps = geometry.taps();
  const Product product{data.shape()[0] * groups, out_channels, geometry.outputs(),
                        in_channels * taps};
  const T* w = weight.data<T>();
  const T* x = data.data<T>();
  FillPanel weights;
  if (!transposed) {
    weights = strided_panel(
        w, [=](int64_t batch) { return batch % groups * out_channels * in_channels * taps; },
        product.k, 1);
  } else {  // row: output channel; column: (input channel, tap)
    weights = [=](int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                  double* to, int64_t stride) {
      const T* group = w + batch % groups * in_channels * out_channels * taps;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          to[r * stride + c] = static_cast<double>(
              group[((column + c) / taps * out_channels + row + r) * taps + (column + c) % taps]);
    };
  }
  FillPanel shifted = [&](int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          double* to, int64_t stride) {
    const T* group = x + batch * in_channels * geometry.inputs();
    for (int64_t r = 0; r < rows; ++r)
      fill_row(geometry, group + (row + r) / taps * geometry.inputs(), (row + r) % taps, column,
               columns, to + r * stride);
  };
  blocked_product(product, weights, shifted, dense_store(out.data<T>(), product.m, product.n));
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
