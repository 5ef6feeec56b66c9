#include "frontend/onnx/operators/matrix_product.h"

#include <utility>

namespace collage::frontend {

Result<Expr> matrix_product(NodeContext& node, Expr a, Expr b, bool transpose_a, bool transpose_b) {
  if (rank_of(a) == 0 || rank_of(b) == 0) return bad_model("an operand is a scalar");
  const bool row = rank_of(a) == 1, column = rank_of(b) == 1;
  if (row) a = TRY(node.call("expand_dims", {a}, {{"axis", int64_t{0}}}));
  if (column) b = TRY(node.call("expand_dims", {b}, {{"axis", int64_t{1}}}));
  Expr result = TRY(
      node.call("nn.matmul", {a, b},
                {{"transpose_a", transpose_a && !row}, {"transpose_b", transpose_b && !column}}));
  if (!row && !column) return result;
  Shape shape = shape_of(result);
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return node.reshape(result, std::move(shape));
}

Result<Expr> scaled(NodeContext& node, const Expr& data, double factor) {
  if (factor == 1.0) return data;
  return node.call("multiply", {data, TRY(node.scalar_like(data, factor))});
}

}  // namespace collage::frontend
