// Normalisations of the domain com.microsoft: those of a sum (SkipLayerNormalization and its RMS
// form) and of embeddings. Half precision is converted to single for them and back at the end.
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

constexpr double kEpsilon = 1e-12;  // unless the node has one

// input + bias + skip. The bias comes first: it is that of the product which made the input. Skip
// may have fewer dimensions, or a batch of one.
Result<Expr> residual_sum(NodeContext& node, size_t bias) {
  Expr sum = TRY(node.widened(node.in(0)));
  if (node.has(bias))
    sum = TRY(
        node.call("nn.bias_add", {sum, TRY(node.widened(node.in(bias)))}, {{"axis", int64_t{-1}}}));
  sum = TRY(node.call("add", {sum, TRY(node.widened(node.in(1)))}));
  if (shape_of(sum) != node.shape(0))
    return bad_model("skip of shape {} does not fit the input {}", shape_to_string(node.shape(1)),
                     shape_to_string(node.shape(0)));
  return sum;
}

Result<Expr> layer_norm(NodeContext& node, const Expr& data, const Expr& gamma, const Expr& beta) {
  Expr scale = TRY(node.widened(gamma));
  Expr shift = beta == nullptr ? TRY(node.full(dtype_of(data), shape_of(gamma), 0))
                               : TRY(node.widened(beta));
  return node.call("nn.layer_norm", {data, scale, shift},
                   {{"axis", int64_t{-1}}, {"epsilon", TRY(node.real("epsilon", kEpsilon))}});
}

// Mean and deviation are outputs of training; ONNX Runtime leaves them empty too.
Result<Outputs> with_sum(NodeContext& node, const Expr& normalised, const Expr& sum) {
  const DType dtype = node.dtype(0);
  return Outputs{TRY(node.cast(normalised, dtype)), nullptr, nullptr,
                 node.wants(3) ? TRY(node.cast(sum, dtype)) : nullptr};
}

Result<Outputs> convert_skip_layer_norm(NodeContext& node) {
  Expr sum = TRY(residual_sum(node, 4));
  Expr result = TRY(layer_norm(node, sum, node.in(2), node.has(3) ? node.in(3) : nullptr));
  return with_sum(node, result, sum);
}

Result<Outputs> convert_skip_rms_norm(NodeContext& node) {
  Expr sum = TRY(residual_sum(node, 3));
  Expr result =
      TRY(node.call("nn.rms_norm", {sum, TRY(node.widened(node.in(2)))},
                    {{"axis", int64_t{-1}}, {"epsilon", TRY(node.real("epsilon", kEpsilon))}}));
  return with_sum(node, result, sum);
}

// The positions that are given, or 0, 1, 2 …, which are the first rows.
Result<Expr> position_embedding(NodeContext& node, int64_t length) {
  const Expr& table = node.in(3);
  if (node.has(8)) return node.call("take", {table, node.in(8)}, {{"axis", int64_t{0}}});
  if (node.rank(3) != 2 || node.shape(3)[0] < length)
    return bad_model("position_embedding of shape {} for {} positions",
                     shape_to_string(node.shape(3)), length);
  return node.call("strided_slice", {table},
                   {{"begin", Ints{0}}, {"end", Ints{length}}, {"axes", Ints{0}}});
}

// How many elements of each row of the mask are 1; zeros without a mask.
Result<Expr> mask_index(NodeContext& node, int64_t batch) {
  if (!node.has(7)) return node.full(DType::kInt32, {batch}, 0);
  Expr ones = TRY(node.call("equal", {node.in(7), TRY(node.scalar_like(node.in(7), 1))}));
  return node.call("sum", {TRY(node.cast(ones, DType::kInt32))},
                   {{"axis", Ints{1}}, {"keepdims", false}});
}

Result<Outputs> convert_embed_layer_norm(NodeContext& node) {
  for (size_t i : {size_t{0}, size_t{7}})
    if (node.has(i) && node.rank(i) != 2)
      return bad_model("input {} has rank {}, not 2", i, node.rank(i));
  for (size_t i : {size_t{2}, size_t{3}, size_t{5}, size_t{6}})
    if (!node.has(i)) return bad_model("input {} is missing", i);
  if (node.has(1) != node.has(4))
    return bad_model("only one of segment_ids and segment_embedding is given");
  const int64_t batch = node.shape(0)[0], length = node.shape(0)[1];
  Expr sum = TRY(node.call("take", {node.in(2), node.in(0)}, {{"axis", int64_t{0}}}));
  sum = TRY(node.call("add", {sum, TRY(position_embedding(node, length))}));
  if (node.has(1)) {
    Expr segments = TRY(node.call("take", {node.in(4), node.in(1)}, {{"axis", int64_t{0}}}));
    sum = TRY(node.call("add", {sum, segments}));
  }
  if (rank_of(sum) != 3 || shape_of(sum)[0] != batch || shape_of(sum)[1] != length)
    return bad_model("embeddings of shape {} for ids of shape {}", shape_to_string(shape_of(sum)),
                     shape_to_string(node.shape(0)));
  Expr result = TRY(layer_norm(node, TRY(node.widened(sum)), node.in(5), node.in(6)));
  return Outputs{TRY(node.cast(result, node.dtype(2))),
                 node.wants(1) ? TRY(mask_index(node, batch)) : nullptr, sum};
}

}  // namespace

ConverterRows microsoft_norm_converters() {
  return {
      {"EmbedLayerNormalization", 1, 9, convert_embed_layer_norm},
      {"SkipLayerNormalization", 3, 5, convert_skip_layer_norm},
      {"SkipSimplifiedLayerNormalization", 3, 4, convert_skip_rms_norm},
  };
}

}  // namespace collage::frontend
