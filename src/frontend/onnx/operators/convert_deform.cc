// DeformConv: a convolution whose taps are moved, each by an offset of its own at every position of
// the window, and weighted by a mask.
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/window.h"

namespace collage::frontend {

namespace {

Result<Expr> convert_deform_conv(NodeContext& node) {
  const Shape& weight = node.shape(1);
  if (weight.size() != node.shape(0).size() || weight.size() < 3)
    return bad_model("data {} and weight {} have different ranks or fewer than 3",
                     shape_to_string(node.shape(0)), shape_to_string(weight));
  const Window window =
      TRY(read_window(node, node.shape(0), Ints(weight.begin() + 2, weight.end())));
  std::vector<Expr> args = {node.in(0), node.in(1), node.in(2)};
  if (node.has(4)) args.push_back(node.in(4));
  const Expr result = TRY(node.call("nn.deformable_conv", std::move(args),
                                    {{"strides", window.strides},
                                     {"padding", window.padding},
                                     {"dilation", window.dilations},
                                     {"groups", TRY(node.integer("group", 1))},
                                     {"offset_groups", TRY(node.integer("offset_group", 1))}}));
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
