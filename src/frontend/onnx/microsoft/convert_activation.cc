// GELUs of the domain com.microsoft. A bias is added to the data first.
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// The bias is one value a channel: it becomes a product's bias where the data is a product.
Result<Expr> biased(NodeContext& node) {
  if (!node.has(1)) return node.in(0);
  if (node.rank(0) < 1 || node.shape(1) != Shape{node.shape(0).back()})
    return bad_model("bias of shape {} for data of shape {}", shape_to_string(node.shape(1)),
                     shape_to_string(node.shape(0)));
  return node.call("nn.bias_add", {node.in(0), node.in(1)}, {{"axis", int64_t{-1}}});
}

Result<Expr> gelu(NodeContext& node, const Expr& data, const char* approximate) {
  return node.call("nn.gelu", {data}, {{"approximate", std::string(approximate)}});
}

Converter bias_gelu(const char* approximate) {
  return single([approximate](NodeContext& node) -> Result<Expr> {
    return gelu(node, TRY(biased(node)), approximate);
  });
}

// x · sigmoid(alpha · x)
Result<Expr> convert_quick_gelu(NodeContext& node) {
  const double alpha = TRY(node.real("alpha", 1.702));
  if (alpha == 1.0) return node.call("nn.silu", {node.in(0)});
  Expr scaled = TRY(node.call("multiply", {node.in(0), TRY(node.scalar_like(node.in(0), alpha))}));
  return node.call("multiply", {node.in(0), TRY(node.call("sigmoid", {scaled}))});
}

// The left half of the channels times the GELU of the right half.
Result<Expr> convert_bias_split_gelu(NodeContext& node) {
  Expr data = TRY(biased(node));
  const int64_t width = shape_of(data).back();
  if (width % 2 != 0) return bad_model("{} channels do not split in two", width);
  Expr halves = TRY(node.call(
      "split", {data}, {{"indices_or_sections", Ints{width / 2}}, {"axis", rank_of(data) - 1}}));
  Expr gate = TRY(gelu(node, node.item(halves, 1), "none"));
  return node.call("multiply", {node.item(halves, 0), gate});
}

}  // namespace

ConverterRows microsoft_activation_converters() {
  return {
      {"BiasGelu", 2, 2, bias_gelu("none")},
      {"BiasSplitGelu", 2, 2, single(convert_bias_split_gelu)},
      {"FastGelu", 1, 2, bias_gelu("tanh")},
      {"QuickGelu", 1, 1, single(convert_quick_gelu)},
  };
}

}  // namespace collage::frontend
