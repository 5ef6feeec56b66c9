// Determinants of small matrices, written out. Larger ones need pivots, which depend on values.
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

class Matrix {
 public:
  Matrix(NodeContext& node, const Expr& data) : node_(node), data_(data) {}

  // One element of every matrix, as (batches …, 1, 1).
  Result<Expr> at(int64_t row, int64_t column) {
    const int64_t rank = rank_of(data_);
    return node_.call("strided_slice", {data_},
                      {{"begin", Ints{row, column}},
                       {"end", Ints{row + 1, column + 1}},
                       {"axes", Ints{rank - 2, rank - 1}}});
  }

  // Of rows 0 and 1 or 1 and 2, and two columns.
  Result<Expr> minor(int64_t row, int64_t left, int64_t right) {
    Expr down = TRY(node_.call("multiply", {TRY(at(row, left)), TRY(at(row + 1, right))}));
    Expr up = TRY(node_.call("multiply", {TRY(at(row, right)), TRY(at(row + 1, left))}));
    return node_.call("subtract", {down, up});
  }

 private:
  NodeContext& node_;
  Expr data_;
};

Result<Expr> determinant(NodeContext& node, int64_t extent) {
  Matrix matrix(node, node.in(0));
  if (extent == 1) return node.in(0);
  if (extent == 2) return matrix.minor(0, 0, 1);
  Expr terms[3];
  for (int64_t column = 0; column < 3; ++column) {
    const int64_t left = column == 0 ? 1 : 0, right = column == 2 ? 1 : 2;
    terms[column] =
        TRY(node.call("multiply", {TRY(matrix.at(0, column)), TRY(matrix.minor(1, left, right))}));
  }
  Expr difference = TRY(node.call("subtract", {terms[0], terms[1]}));
  return node.call("add", {difference, terms[2]});
}

Result<Expr> convert_det(NodeContext& node) {
  const Shape& shape = node.shape(0);
  const int64_t rank = node.rank(0);
  if (rank < 2 || shape.back() < 1 || shape[shape.size() - 2] != shape.back())
    return bad_model("data of shape {} holds no square matrices", shape_to_string(shape));
  if (shape.back() > 3) return unsupported("matrices larger than 3 by 3");
  Expr result = TRY(determinant(node, shape.back()));
  return node.reshape(result, Shape(shape.begin(), shape.end() - 2));
}

}  // namespace

ConverterRows determinant_converters() {
  return {
      {"Det", 1, 1, single(convert_det)},
  };
}

}  // namespace collage::frontend
