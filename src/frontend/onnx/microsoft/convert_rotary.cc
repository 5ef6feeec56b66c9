// RotaryEmbedding of com.microsoft: positions come before the caches, and one position stands for
// all that follow it.
#include "frontend/onnx/microsoft/attention.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// Cosines or sines of all positions as (batch or 1, length, size / 2), from a cache of rows.
Result<Expr> rows_of(NodeContext& node, size_t cache, int64_t batch, int64_t length) {
  if (node.rank(cache) != 2)
    return bad_model("a cache has shape {}, not rank 2", shape_to_string(node.shape(cache)));
  if (num_elements(node.shape(1)) == 1)
    return cache_rows_from(node, node.in(cache), node.in(1), length);
  if (node.shape(1) != Shape{batch, length})
    return bad_model("position_ids of shape {}, not {}", shape_to_string(node.shape(1)),
                     shape_to_string({batch, length}));
  return node.call("take", {node.in(cache), node.in(1)}, {{"axis", int64_t{0}}});
}

// Heads stand behind the positions in data of rank 3, before them in data of rank 4.
Result<Expr> convert_microsoft_rotary(NodeContext& node) {
  if (TRY(node.flag("is_packed_batching", false))) return unsupported("is_packed_batching");
  if (TRY(node.real("scale", 1.0)) != 1.0) return unsupported("scale");
  const bool merged = node.rank(0) == 3;
  if (!merged && node.rank(0) != 4) return bad_model("data of rank {}, not 3 or 4", node.rank(0));
  const Shape& shape = node.shape(0);
  const int64_t length = shape[merged ? 1 : 2];
  Expr factors[2];
  for (size_t i = 0; i < 2; ++i) factors[i] = TRY(rows_of(node, 2 + i, shape[0], length));
  if (shape_of(factors[0]) != shape_of(factors[1]))
    return bad_model("caches of shapes {} and {}", shape_to_string(node.shape(2)),
                     shape_to_string(node.shape(3)));
  const int64_t rotated = 2 * shape_of(factors[0])[2];
  const int64_t given = TRY(node.integer("rotary_embedding_dim", 0));
  if (given != 0 && given != rotated)
    return bad_model("rotary_embedding_dim {} does not fit caches of {} columns", given,
                     rotated / 2);
  // Without rotary_embedding_dim whole heads are rotated.
  int64_t size = merged ? rotated : shape[3];
  if (merged && given != 0) {
    const int64_t heads = TRY(node.integer("num_heads", 0));
    if (heads < 1 || shape[2] % heads != 0)
      return bad_model("num_heads {} does not divide {}", heads, shape[2]);
    size = shape[2] / heads;
  }
  if (size < 1 || rotated < 2 || rotated > size || (given == 0 && rotated != size) ||
      shape.back() % size != 0)
    return bad_model("caches of {} columns do not fit data of shape {}", rotated / 2,
                     shape_to_string(shape));
  Expr data = node.in(0);
  if (merged) data = TRY(node.reshape(data, {shape[0], length, shape[2] / size, size}));
  for (Expr& factor : factors) factor = TRY(beside_heads(node, factor, merged ? 2 : 1));
  Expr result =
      TRY(rotate(node, data, factors[0], factors[1], TRY(node.flag("interleaved", false))));
  return node.reshape(result, shape);
}

}  // namespace

ConverterRows microsoft_rotary_converters() {
  return {
      {"RotaryEmbedding", 4, 4, single(convert_microsoft_rotary)},
  };
}

}  // namespace collage::frontend
