// Operators on quantised tensors that ONNX Runtime's tools put into models: the real operator
// between qnn.dequantize and qnn.quantize.
#include <utility>

#include "frontend/onnx/operators/quantisation.h"

namespace collage::frontend {

namespace {

// Where the channels are last, `convert` gets data with the channels in front, and gives the same.
Result<Expr> with_channels_first(NodeContext& node, const Expr& data,
                                 const std::function<Result<Expr>(const Expr&)>& convert) {
  if (!TRY(node.flag("channels_last", false))) return convert(data);
  const int64_t rank = rank_of(data);
  if (rank < 3) return bad_model("data of shape {}", shape_to_string(shape_of(data)));
  Ints first = {0, rank - 1}, last = {0};
  for (int64_t axis = 1; axis < rank - 1; ++axis) {
    first.push_back(axis);
    last.push_back(axis + 1);
  }
  last.push_back(1);
  return node.transpose(TRY(convert(TRY(node.transpose(data, first)))), last);
}

// An operator of one tensor: data, its scale and zero point, the result's.
Converter qlinear_unary(const char* op) {
  return single([op](NodeContext& node) -> Result<Expr> {
    return with_channels_first(node, node.in(0), [&](const Expr& data) -> Result<Expr> {
      std::vector<Expr> inputs = node.inputs();
      inputs[0] = data;
      NodeContext moved = node.with_inputs(std::move(inputs));
      const Expr real = TRY(dequantised(moved, {0, 1, 2}));
      return quantised(moved, TRY(as_standard(moved, op, {real})), 3, 4, moved.dtype(0));
    });
  });
}

// An operator of two tensors: each with scale and zero point, then the result's.
Converter qlinear_binary(const char* op) {
  return single([op](NodeContext& node) -> Result<Expr> {
    const Expr a = TRY(dequantised(node, {0, 1, 2})), b = TRY(dequantised(node, {3, 4, 5}));
    return quantised(node, TRY(as_standard(node, op, {a, b})), 6, 7, node.dtype(0));
  });
}

// The opset attribute says which Softmax it is; the axis is the last by default in any.
Result<Expr> convert_softmax(NodeContext& node) {
  const Expr real = TRY(dequantised(node, {0, 1, 2}));
  const int64_t opset = TRY(node.integer("opset"));
  if ((opset < 13) != (node.opset() < 13))
    return unsupported("opset {} in a model of operator set {}", opset, node.opset());
  const Expr shares = node.has_attr("axis")
                          ? TRY(as_standard(node, "Softmax", {real}))
                          : TRY(node.call("nn.softmax", {real}, {{"axis", int64_t{-1}}}));
  return quantised(node, shares, 3, 4, node.dtype(0));
}

// The result's scale and zero point, then three inputs for each tensor.
Result<Expr> convert_qlinear_concat(NodeContext& node) {
  if (node.num_inputs() < 5 || !node.has(2)) return bad_model("no tensor to concatenate");
  std::vector<Expr> reals;
  for (size_t i = 2; i < node.num_inputs(); i += 3)
    reals.push_back(TRY(dequantised(node, {i, i + 1, i + 2})));
  return quantised(node, TRY(as_standard(node, "Concat", std::move(reals))), 0, 1, node.dtype(2));
}

// alpha * (A · B + C), where C's scale is the product of A's and B's.
Result<Expr> convert_qlinear_gemm(NodeContext& node) {
  const double alpha = TRY(node.real("alpha", 1.0));
  const Expr a = TRY(dequantised(node, {0, 1, 2}));
  const Expr b = TRY(dequantised(node, {3, 4, 5}, TRY(node.flag("transB", false)) ? 0 : -1));
  Expr c;
  if (node.has(6))
    c = TRY(dequantised_bias(node, node.in(6), TRY(quantisation_parameters(node, 1, 2)).scale,
                             TRY(quantisation_parameters(node, 4, 5)).scale, alpha, -1));
  const Expr real = TRY(as_standard(node, "Gemm", {a, b, c}));
  if (!node.has(7)) return real;
  return quantised(node, real, 7, 8, node.dtype(0));
}

Result<Expr> with_bias(NodeContext& node, const Expr& product, size_t bias) {
  if (!node.has(bias)) return product;
  return node.call("add", {product, node.in(bias)});
}

Result<Expr> convert_matmul_integer_to_float(NodeContext& node) {
  const Expr a = TRY(dequantised(node, {0, 2, 4})), b = TRY(dequantised(node, {1, 3, 5}, -1));
  return with_bias(node, TRY(as_standard(node, "MatMul", {a, b})), 6);
}

Result<Expr> convert_dynamic_quantize_matmul(NodeContext& node) {
  const DynamicallyQuantised made = TRY(dynamically_quantised(node, node.in(0)));
  const Expr a = TRY(node.call("qnn.dequantize", {made.data, made.scale, made.zero_point}));
  const Expr b = TRY(dequantised(node, {1, 2, 3}, -1));
  return with_bias(node, TRY(as_standard(node, "MatMul", {a, b})), 4);
}

}  // namespace

ConverterRows microsoft_qlinear_converters() {
  return {
      {"DynamicQuantizeMatMul", 3, 5, single(convert_dynamic_quantize_matmul)},
      {"MatMulIntegerToFloat", 4, 7, single(convert_matmul_integer_to_float)},
      {"QGemm", 5, 9, single(convert_qlinear_gemm)},
      {"QLinearAdd", 2, 8, qlinear_binary("Add")},
      {"QLinearAveragePool", 2, 5, qlinear_unary("AveragePool")},
      {"QLinearConcat", 2, -1, single(convert_qlinear_concat)},
      {"QLinearGlobalAveragePool", 2, 5, qlinear_unary("GlobalAveragePool")},
      {"QLinearLeakyRelu", 2, 5, qlinear_unary("LeakyRelu")},
      {"QLinearMul", 2, 8, qlinear_binary("Mul")},
      {"QLinearSigmoid", 2, 5, qlinear_unary("Sigmoid")},
      {"QLinearSoftmax", 2, 5, single(convert_softmax)},
  };
}

}  // namespace collage::frontend
