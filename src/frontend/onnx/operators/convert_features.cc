// Operators of the domain ai.onnx.ml that are tensor arithmetic.
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// Elements of the last axis by index; a vector counts as a matrix of one row.
Result<Expr> convert_feature_extractor(NodeContext& node) {
  Expr data = node.in(0);
  if (rank_of(data) < 1) return bad_model("the data is a scalar");
  if (rank_of(data) == 1) data = TRY(node.reshape(data, {1, shape_of(data)[0]}));
  const int64_t count = num_elements(node.shape(1));
  Expr indices = TRY(node.reshape(node.in(1), {count}));
  return node.call("take", {data, indices}, {{"axis", rank_of(data) - 1}});
}

Result<Expr> convert_binarizer(NodeContext& node) {
  Expr threshold = TRY(node.scalar_like(node.in(0), TRY(node.real("threshold", 0.0))));
  return node.cast(TRY(node.call("greater", {node.in(0), threshold})), node.dtype(0));
}

}  // namespace

ConverterRows feature_converters() {
  return {
      {"ArrayFeatureExtractor", 2, 2, single(convert_feature_extractor)},
      {"Binarizer", 1, 1, single(convert_binarizer)},
  };
}

}  // namespace collage::frontend
