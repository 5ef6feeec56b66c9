// Matrix products. Gemm with a transposed second operand is nn.dense; a bias of one row is
// nn.bias_add.
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/matrix_product.h"
#include "ops/type_rules.h"

namespace collage::frontend {

namespace {

Result<Expr> convert_gemm(NodeContext& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2)
    return bad_model("operands {} and {} are not matrices", shape_to_string(node.shape(0)),
                     shape_to_string(node.shape(1)));
  const bool transpose_a = TRY(node.flag("transA", false));
  const bool transpose_b = TRY(node.flag("transB", false));
  const double alpha = TRY(node.real("alpha", 1.0));
  const double beta = TRY(node.real("beta", 1.0));
  Expr result = transpose_b && !transpose_a
                    ? TRY(node.call("nn.dense", {node.in(0), node.in(1)}))
                    : TRY(node.call("nn.matmul", {node.in(0), node.in(1)},
                                    {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}));
  result = TRY(scaled(node, result, alpha));
  if (!node.has(2) || beta == 0.0) return result;
  Expr bias = TRY(scaled(node, node.in(2), beta));
  const Shape& product_shape = shape_of(result);
  const Shape& shape = shape_of(bias);
  if (TRY(broadcast_shapes(shape, product_shape)) != product_shape)
    return bad_model("C of shape {} does not broadcast to {}", shape_to_string(shape),
                     shape_to_string(product_shape));
  if (shape == Shape{product_shape[1]})
    return node.call("nn.bias_add", {result, bias}, {{"axis", int64_t{-1}}});
  return node.call("add", {result, bias});
}

Result<Expr> convert_matmul(NodeContext& node) {
  return matrix_product(node, node.in(0), node.in(1));
}

}  // namespace

ConverterRows matmul_converters() {
  return {
      {"Gemm", 2, 3, single(convert_gemm)},
      {"MatMul", 2, 2, single(convert_matmul)},
  };
}

}  // namespace collage::frontend
