// Fourier transforms, each as one product with a constant matrix, and the weights of mel spectra.
#include <cmath>
#include <numbers>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// A transform along one axis of data whose last axis holds real and imaginary parts.
struct Transform {
  int64_t length;  // points; data is cut or filled with zeros to it
  bool inverse;
  bool onesided;        // only frequencies up to half, whose others are their conjugates
  int64_t inputs;       // of the data's points those that take part
  int64_t input_parts;  // 1 for real data, 2
  int64_t outputs;
  int64_t output_parts;  // 1 where the result is real, 2
};

Result<Transform> make_transform(int64_t length, bool inverse, bool onesided, int64_t points,
                                 int64_t parts) {
  if (parts != 1 && parts != 2) return bad_model("{} parts of a number, not 1 or 2", parts);
  if (length < 1 || length > kMaxFoldedIntegers)
    return bad_model("a transform of {} points", length);
  if (onesided && !inverse && parts == 2) return bad_model("onesided with complex data");
  Transform t{length, inverse, onesided, 0, parts, length, 2};
  const int64_t half = length / 2 + 1;
  t.inputs = std::min(points, inverse && onesided ? half : length);
  if (onesided && inverse) t.output_parts = 1;
  if (onesided && !inverse) t.outputs = half;
  const double elements = static_cast<double>(t.inputs * t.input_parts) *
                          static_cast<double>(t.outputs * t.output_parts);
  if (elements > static_cast<double>(kMaxFoldedIntegers))
    return unsupported("a transform of {} points", length);
  return t;
}

// [inputs · input_parts, outputs · output_parts]
template <typename T>
Tensor matrix_of(const Transform& t, DType dtype) {
  Tensor matrix = Tensor::empty(dtype, {t.inputs * t.input_parts, t.outputs * t.output_parts});
  T* to = matrix.data<T>();
  const double scale = t.inverse ? 1.0 / static_cast<double>(t.length) : 1.0;
  for (int64_t in = 0; in < t.inputs; ++in) {
    // A frequency that stands for its conjugate too counts twice.
    const bool twice = t.inverse && t.onesided && in != 0 && 2 * in != t.length;
    for (int64_t part = 0; part < t.input_parts; ++part)
      for (int64_t out = 0; out < t.outputs; ++out) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(in * out % t.length) /
                             static_cast<double>(t.length) * (t.inverse ? 1 : -1);
        const double weight = twice ? 2 * scale : scale;
        const double cosine = weight * std::cos(angle), sine = weight * std::sin(angle);
        *to++ = static_cast<T>(part == 0 ? cosine : -sine);
        if (t.output_parts == 2) *to++ = static_cast<T>(part == 0 ? sine : cosine);
      }
  }
  return matrix;
}

Result<Expr> apply(NodeContext& node, const Transform& t, Expr data, int64_t axis) {
  if (!is_float(dtype_of(data))) return bad_model("data is {}", dtype_name(dtype_of(data)));
  const int64_t rank = rank_of(data);
  Ints order, back(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  order.push_back(rank - 1);
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  if (shape_of(data)[static_cast<size_t>(axis)] != t.inputs)
    data = TRY(node.call("strided_slice", {data},
                         {{"begin", Ints{0}}, {"end", Ints{t.inputs}}, {"axes", Ints{axis}}}));
  data = TRY(node.transpose(data, order));
  Shape shape = shape_of(data);
  const int64_t rows = product(shape, 0, shape.size() - 2);
  data = TRY(node.reshape(data, {rows, t.inputs * t.input_parts}));
  Tensor matrix = dtype_of(data) == DType::kFloat64 ? matrix_of<double>(t, DType::kFloat64)
                                                    : matrix_of<float>(t, DType::kFloat32);
  Expr weights = TRY(node.cast(node.constant_of(std::move(matrix)), dtype_of(data)));
  Expr result = TRY(node.call("nn.matmul", {data, weights}));
  shape[shape.size() - 2] = t.outputs;
  shape.back() = t.output_parts;
  return node.transpose(TRY(node.reshape(result, std::move(shape))), back);
}

Result<int64_t> one_integer(NodeContext& node, size_t input, const char* what) {
  const Ints values = TRY(node.constant_ints(input, what));
  if (values.size() != 1) return bad_model("{} has {} values", what, values.size());
  return values[0];
}

Result<Expr> convert_dft(NodeContext& node) {
  const bool by_input = node.opset() >= 20;  // the axis
  int64_t axis = by_input ? -2 : TRY(node.integer("axis", 1));
  if (by_input && node.has(2)) axis = TRY(one_integer(node, 2, "axis"));
  axis = TRY(normal_axis(axis, node.rank(0)));
  if (node.rank(0) < 2 || axis == node.rank(0) - 1)
    return bad_model("axis {} of data of shape {}", axis, shape_to_string(node.shape(0)));
  const int64_t points = node.shape(0)[static_cast<size_t>(axis)];
  const bool inverse = TRY(node.flag("inverse", false));
  const bool onesided = TRY(node.flag("onesided", false));
  int64_t length = inverse && onesided ? 2 * (points - 1) : points;
  if (node.has(1)) length = TRY(one_integer(node, 1, "dft_length"));
  const Transform t = TRY(make_transform(length, inverse, onesided, points, node.shape(0).back()));
  return apply(node, t, node.in(0), axis);
}

// Windows of the signal that start every so many samples, each weighted and transformed.
Result<Expr> convert_stft(NodeContext& node) {
  if (node.rank(0) != 3) return bad_model("a signal of rank {}, not 3", node.rank(0));
  const int64_t samples = node.shape(0)[1], step = TRY(one_integer(node, 1, "frame_step"));
  int64_t length = samples;
  if (node.has(2)) length = num_elements(node.shape(2));
  if (node.has(3)) length = TRY(one_integer(node, 3, "frame_length"));
  if (step < 1 || length < 1 || length > samples)
    return bad_model("frames of {} samples at every {} of {}", length, step, samples);
  if (node.has(2) && node.shape(2) != Shape{length})
    return bad_model("a window of shape {} for frames of {} samples",
                     shape_to_string(node.shape(2)), length);
  const Transform t = TRY(
      make_transform(length, false, TRY(node.flag("onesided", true)), length, node.shape(0)[2]));
  const int64_t frames = 1 + (samples - length) / step;
  if (frames > kMaxFoldedIntegers / length)
    return unsupported("{} frames of {} samples", frames, length);
  Tensor places = Tensor::empty(DType::kInt64, {frames, length});
  for (int64_t i = 0; i < places.size(); ++i)
    places.data<int64_t>()[i] = i / length * step + i % length;
  Expr data = TRY(
      node.call("take", {node.in(0), node.constant_of(std::move(places))}, {{"axis", int64_t{1}}}));
  if (node.has(2))
    data = TRY(node.call("multiply", {data, TRY(node.reshape(node.in(2), {length, 1}))}));
  return apply(node, t, data, 2);
}

// Triangles over the bins of a spectrum, whose corners are evenly spaced on the mel scale.
Result<Expr> convert_mel_weights(NodeContext& node) {
  static constexpr const char* kNames[] = {"num_mel_bins", "dft_length", "sample_rate",
                                           "lower_edge_hertz", "upper_edge_hertz"};
  double given[5];
  for (size_t i = 0; i < 5; ++i) {
    const std::vector<double> values = TRY(node.constant_reals(i, kNames[i]));
    if (values.size() != 1 || !std::isfinite(values[0]) || values[0] < 0 || values[0] > 1e9)
      return bad_model("{} is no number from 0 to 1e9", kNames[i]);
    given[i] = values[0];
  }
  const auto bins = static_cast<int64_t>(given[0]), length = static_cast<int64_t>(given[1]);
  const int64_t spectrum = length / 2 + 1;
  if (given[2] < 1 || bins > kMaxFoldedIntegers / spectrum)
    return bad_model("{} mel bins of {} points at {} samples a second", bins, length, given[2]);
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(given[3]), step = (mel(given[4]) - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> corners;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    corners.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / given[2])));
    if (corners.back() < 0 || corners.back() >= spectrum)
      return bad_model("a mel bin beyond the spectrum of {} points", spectrum);
  }
  Tensor weights = Tensor::zeros(DType::kFloat64, {spectrum, bins});
  double* to = weights.data<double>();
  for (int64_t bin = 0; bin < bins; ++bin) {
    const int64_t left = corners[static_cast<size_t>(bin)],
                  top = corners[static_cast<size_t>(bin + 1)],
                  right = corners[static_cast<size_t>(bin + 2)];
    if (left == top) to[top * bins + bin] = 1;
    for (int64_t i = left; i <= top && left < top; ++i)
      to[i * bins + bin] = static_cast<double>(i - left) / static_cast<double>(top - left);
    for (int64_t i = top; i < right; ++i)
      to[i * bins + bin] = static_cast<double>(right - i) / static_cast<double>(right - top);
  }
  const DType dtype = node.has_attr("output_datatype") ? TRY(node.element_type("output_datatype"))
                                                       : DType::kFloat32;
  return node.cast(node.constant_of(std::move(weights)), dtype);
}

}  // namespace

ConverterRows signal_converters() {
  return {
      {"DFT", 1, 3, single(convert_dft)},
      {"MelWeightMatrix", 5, 5, single(convert_mel_weights)},
      {"STFT", 2, 4, single(convert_stft)},
  };
}

}  // namespace collage::frontend
