// DeformConv: a convolution whose taps are moved, each by an offset of its own at every position of
// the window. The moved taps are read from the image as columns (batch, channels · taps, positions)
// and multiplied with the weight.
#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/image_sampler.h"
#include "frontend/onnx/operators/window.h"

namespace collage::frontend {

namespace {

struct Deformed {
  Window window;
  Ints extents, positions;  // of the image, and of the window in it
  int64_t group = 1, offset_group = 1;

  int64_t taps() const { return num_elements(window.kernel); }
  int64_t places() const { return num_elements(positions); }
};

Status check_offsets(const NodeContext& node, const Deformed& d, size_t input, int64_t per_tap,
                     const char* name) {
  Shape expected = {node.shape(0)[0], d.offset_group * d.taps() * per_tap};
  expected.insert(expected.end(), d.positions.begin(), d.positions.end());
  if (node.shape(input) != expected)
    return bad_model("{} of shape {}, not {}", name, shape_to_string(node.shape(input)),
                     shape_to_string(expected));
  return {};
}

Result<Deformed> read_deformed(const NodeContext& node) {
  const Shape &data = node.shape(0), &weight = node.shape(1);
  if (data.size() < 3 || weight.size() != data.size())
    return bad_model("data {} and weight {} have different ranks or fewer than 3",
                     shape_to_string(data), shape_to_string(weight));
  if (data.size() > 5) return unsupported("{} spatial dimensions", data.size() - 2);
  Deformed d;
  d.extents = Ints(data.begin() + 2, data.end());
  d.window = TRY(read_window(node, data, Ints(weight.begin() + 2, weight.end())));
  d.group = TRY(node.integer("group", 1));
  d.offset_group = TRY(node.integer("offset_group", 1));
  if (num_elements(data) == 0 || num_elements(weight) == 0)
    return unsupported("data {} and weight {}", shape_to_string(data), shape_to_string(weight));
  if (d.group < 1 || d.group > data[1] || data[1] != weight[1] * d.group ||
      weight[0] % d.group != 0)
    return bad_model("group {} does not fit {} channels and a weight of shape {}", d.group, data[1],
                     shape_to_string(weight));
  if (d.offset_group < 1 || data[1] % d.offset_group != 0)
    return bad_model("offset_group {} does not divide {} channels", d.offset_group, data[1]);
  int64_t places = 1;
  for (size_t i = 0; i < d.extents.size(); ++i) {
    const int64_t room = d.extents[i] + d.window.padding[i] +
                         d.window.padding[i + d.extents.size()] - d.window.span(i);
    if (room < 0 || d.extents[i] < 1)
      return bad_model("kernel {} does not fit data {}", shape_to_string(d.window.kernel),
                       shape_to_string(data));
    d.positions.push_back(room / d.window.strides[i] + 1);
    if (d.positions[i] > kMaxFoldedIntegers / places)
      return unsupported("more than {} places", kMaxFoldedIntegers);
    places *= d.positions[i];
  }
  TRY(check_computed_shape(d.window.kernel));
  if (d.taps() > kMaxFoldedIntegers / places)
    return unsupported("{} places of {} taps", places, d.taps());
  TRY(check_offsets(node, d, 2, static_cast<int64_t>(d.extents.size()), "offset"));
  if (node.has(4)) TRY(check_offsets(node, d, 4, 1, "mask"));
  return d;
}

// Where each tap reads along an axis before it is moved, (1, 1, taps · places).
Result<Expr> unmoved(NodeContext& node, const Deformed& d, size_t axis) {
  const int64_t places = d.places(), taps = d.taps();
  const int64_t after = product(d.positions, axis + 1, d.positions.size());
  const int64_t inner = product(d.window.kernel, axis + 1, d.window.rank());
  Tensor at = Tensor::empty(DType::kFloat32, {1, 1, taps * places});
  for (int64_t i = 0; i < at.size(); ++i) {
    const int64_t tap = i / places / inner % d.window.kernel[axis];
    const int64_t position = i % places / after % d.positions[axis];
    at.data<float>()[i] =
        static_cast<float>(position * d.window.strides[axis] - d.window.padding[axis] +
                           tap * d.window.dilations[axis]);
  }
  return node.cast(node.constant_of(at), node.dtype(0));
}

// (batch · offset groups, 1, taps · places): a tap's coordinate along an axis.
Result<Expr> moved(NodeContext& node, const Deformed& d, size_t axis) {
  const int64_t groups = node.shape(0)[0] * d.offset_group;
  const auto dims = static_cast<int64_t>(d.extents.size()), at = static_cast<int64_t>(axis);
  Expr offsets = TRY(node.reshape(node.in(2), {groups, d.taps(), dims, d.places()}));
  offsets = TRY(node.call("strided_slice", {offsets},
                          {{"begin", Ints{at}}, {"end", Ints{at + 1}}, {"axes", Ints{2}}}));
  offsets = TRY(node.reshape(offsets, {groups, 1, d.taps() * d.places()}));
  return node.call("add", {offsets, TRY(unmoved(node, d, axis))});
}

Result<Expr> convert_deform_conv(NodeContext& node) {
  const Deformed d = TRY(read_deformed(node));
  const Shape &data = node.shape(0), &weight = node.shape(1);
  const int64_t batch = data[0], channels = data[1], groups = batch * d.offset_group;
  std::vector<Expr> coordinates;
  for (size_t axis = 0; axis < d.extents.size(); ++axis)
    coordinates.push_back(TRY(moved(node, d, axis)));
  Expr image =
      TRY(node.reshape(node.in(0), {groups, channels / d.offset_group, num_elements(d.extents)}));
  Expr columns = TRY(ImageSampler(node, {}, d.extents).read(image, coordinates));
  if (node.has(4)) {
    Expr mask = TRY(node.reshape(node.in(4), {groups, 1, d.taps() * d.places()}));
    columns = TRY(node.call("multiply", {columns, mask}));
  }
  const int64_t terms = weight[1] * d.taps(), outputs = weight[0] / d.group;
  columns = TRY(node.reshape(columns, {batch, d.group, terms, d.places()}));
  Expr matrix = TRY(node.reshape(node.in(1), {1, d.group, outputs, terms}));
  Expr result = TRY(node.call("nn.matmul", {matrix, columns}));
  Shape shape = {batch, weight[0]};
  shape.insert(shape.end(), d.positions.begin(), d.positions.end());
  result = TRY(node.reshape(result, std::move(shape)));
  if (!node.has(3)) return result;
  return node.call("nn.bias_add", {result, node.in(3)}, {{"axis", int64_t{1}}});
}

}  // namespace

ConverterRows deform_converters() {
  return {
      {"DeformConv", 3, 5, single(convert_deform_conv)},
  };
}

}  // namespace collage::frontend
