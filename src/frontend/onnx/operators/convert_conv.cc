// Convolutions. A bias becomes nn.bias_add.
#include <algorithm>

#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/window.h"

namespace collage::frontend {

namespace {

Result<Expr> add_bias(NodeContext& node, Expr result) {
  if (!node.has(2)) return result;
  return node.call("nn.bias_add", {result, node.in(2)}, {{"axis", int64_t{1}}});
}

Result<int64_t> read_group(const NodeContext& node, int64_t channels) {
  const int64_t group = TRY(node.integer("group", 1));
  if (group < 1 || channels % group != 0)
    return bad_model("group {} does not divide {} channels", group, channels);
  return group;
}

Result<Ints> kernel_of(const NodeContext& node) {
  const Shape& weight = node.shape(1);
  if (weight.size() != node.shape(0).size() || weight.size() < 3)
    return bad_model("data {} and weight {} have different ranks or fewer than 3",
                     shape_to_string(node.shape(0)), shape_to_string(weight));
  return Ints(weight.begin() + 2, weight.end());
}

Result<Expr> convert_conv(NodeContext& node) {
  const Ints kernel = TRY(kernel_of(node));
  const Window window = TRY(read_window(node, node.shape(0), kernel));
  const int64_t group = TRY(read_group(node, node.shape(0)[1]));
  Expr result = TRY(node.call(TRY(op_of_rank("nn.conv", kernel.size())), {node.in(0), node.in(1)},
                              {{"strides", window.strides},
                               {"padding", window.padding},
                               {"dilation", window.dilations},
                               {"groups", group}}));
  return add_bias(node, std::move(result));
}

// Padding of a transposed convolution crops its result. With output_shape or SAME_* the crop is
// what is left over; where the result would have to grow instead, output_padding grows it.
Result<Expr> convert_conv_transpose(NodeContext& node) {
  const Ints kernel = TRY(kernel_of(node));
  const Shape& data = node.shape(0);
  Window window = TRY(read_window(node, data, kernel));
  const size_t spatial = kernel.size();
  const int64_t group = TRY(read_group(node, data[1]));
  Ints extra = TRY(node.ints("output_padding", Ints(spatial, 0)));
  if (extra.size() != spatial ||
      std::any_of(extra.begin(), extra.end(), [](int64_t v) { return v < 0 || v > INT32_MAX; }))
    return bad_model("output_padding {} does not fit {} spatial dimensions", shape_to_string(extra),
                     spatial);
  const bool same = window.auto_pad.rfind("SAME", 0) == 0;
  if (node.has_attr("output_shape") || same) {
    Ints wanted(spatial);
    if (node.has_attr("output_shape")) {
      wanted = TRY(node.ints("output_shape"));
      if (wanted.size() == spatial + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
      if (wanted.size() != spatial)
        return bad_model("output_shape {} does not have {} dimensions", shape_to_string(wanted),
                         spatial);
    } else {
      for (size_t i = 0; i < spatial; ++i) wanted[i] = data[i + 2] * window.strides[i];
    }
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t full = window.strides[i] * (data[i + 2] - 1) + extra[i] + window.span(i);
      if (wanted[i] < 1 || wanted[i] > (int64_t{1} << 40))
        return bad_model("output_shape holds {}", wanted[i]);
      const int64_t total = std::max<int64_t>(0, full - wanted[i]);
      extra[i] += std::max<int64_t>(0, wanted[i] - full);
      window.pad_same(i, total);
    }
  }
  Expr result =
      TRY(node.call(TRY(op_of_rank("nn.conv", spatial, "_transpose")), {node.in(0), node.in(1)},
                    {{"strides", window.strides},
                     {"padding", window.padding},
                     {"output_padding", extra},
                     {"dilation", window.dilations},
                     {"groups", group}}));
  return add_bias(node, std::move(result));
}

}  // namespace

ConverterRows conv_converters() {
  return {
      {"Conv", 2, 3, single(convert_conv)},
      {"ConvTranspose", 2, 3, single(convert_conv_transpose)},
  };
}

}  // namespace collage::frontend
