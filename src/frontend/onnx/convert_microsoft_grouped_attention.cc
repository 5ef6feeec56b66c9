// GroupQueryAttention of com.microsoft over a whole sequence: causal attention where each head of
// keys and values serves several heads of queries. Without a cache of earlier keys and values;
// seqlens_k then only says where a sequence ends, and what stands behind is not read by what stands
// before.
#include "frontend/onnx/microsoft_attention.h"

namespace collage::frontend {

namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSequenceLengths,
  kTotalLength,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

Status refuse_what_is_left_out(NodeContext& node, int64_t length) {
  TRY(refuse_input(node, kPastKey, "a cache of keys and values (past_key)"));
  TRY(refuse_input(node, kPastValue, "a cache of keys and values (past_value)"));
  TRY(refuse_input(node, kSink, "head_sink"));
  TRY(refuse_input(node, kKeyScale, "quantised types (k_scale)"));
  TRY(refuse_input(node, kValueScale, "quantised types (v_scale)"));
  TRY(refuse_input(node, kQueryNorm, "q_norm_weight"));
  TRY(refuse_input(node, kKeyNorm, "k_norm_weight"));
  if (TRY(node.integer("smooth_softmax", 0)) == 1) return unsupported("smooth_softmax");
  if (TRY(node.flag("sliding_window_cache", false)))
    return unsupported("a cache of keys and values (sliding_window_cache)");
  if (const auto* total =
          node.has(kTotalLength) ? as<ConstantNode>(node.in(kTotalLength)) : nullptr;
      total != nullptr && total->value.size() == 1 && total->value.element_as_int64(0) != length)
    return unsupported("a cache of keys and values ({} positions, of which {} are given)",
                       total->value.element_as_int64(0), length);
  return {};
}

// From three inputs, or from one that holds the heads of queries, then of keys, then of values.
Result<Heads> split_inputs(NodeContext& node, int64_t num_heads, int64_t kv_heads) {
  if (node.rank(kQuery) != 3) return bad_model("query of rank {}, not 3", node.rank(kQuery));
  constexpr int64_t kMaxHeads = int64_t{1} << 30;
  if (num_heads < 1 || kv_heads < 1 || num_heads > kMaxHeads || kv_heads > kMaxHeads)
    return bad_model("{} query heads for {} key and value heads", num_heads, kv_heads);
  if (node.has(kKey) != node.has(kValue)) return bad_model("only one of key and value is given");
  const char* name = "kv_num_heads";
  if (node.has(kKey))
    return Heads{TRY(split_heads(node, node.in(kQuery), num_heads, "num_heads")),
                 TRY(split_heads(node, node.in(kKey), kv_heads, name)),
                 TRY(split_heads(node, node.in(kValue), kv_heads, name))};
  const int64_t all = num_heads + 2 * kv_heads, width = node.shape(kQuery)[2];
  if (width % all != 0) return bad_model("{} heads do not divide {}", all, width);
  const int64_t size = width / all;
  Expr parts =
      TRY(node.call("split", {node.in(kQuery)},
                    {{"indices_or_sections", Ints{num_heads * size, (num_heads + kv_heads) * size}},
                     {"axis", int64_t{2}}}));
  return Heads{TRY(split_heads(node, node.item(parts, 0), num_heads, "num_heads")),
               TRY(split_heads(node, node.item(parts, 1), kv_heads, name)),
               TRY(split_heads(node, node.item(parts, 2), kv_heads, name))};
}

// The first rows of a cache, or those from the first of the given positions on.
Result<Expr> cache_rows(NodeContext& node, size_t cache, int64_t length) {
  if (!node.has(cache)) return bad_model("do_rotary without cos_cache or sin_cache");
  if (node.rank(cache) != 2 || node.shape(cache)[0] < length)
    return bad_model("a cache of shape {} for {} positions", shape_to_string(node.shape(cache)),
                     length);
  Expr rows;
  if (node.has(kPositions)) {
    if (num_elements(node.shape(kPositions)) < 1) return bad_model("position_ids are empty");
    Expr all = TRY(node.reshape(node.in(kPositions), {num_elements(node.shape(kPositions))}));
    Expr first = TRY(node.call("strided_slice", {all},
                               {{"begin", Ints{0}}, {"end", Ints{1}}, {"axes", Ints{0}}}));
    rows = TRY(cache_rows_from(node, node.in(cache), first, length));
  } else {
    rows = TRY(node.call("strided_slice", {node.in(cache)},
                         {{"begin", Ints{0}}, {"end", Ints{length}}, {"axes", Ints{0}}}));
    rows = TRY(node.reshape(rows, {1, length, node.shape(cache)[1]}));
  }
  return beside_heads(node, rows, 1);
}

Status rotate_heads(NodeContext& node, Heads& heads) {
  const int64_t length = heads.num_queries(), size = shape_of(heads.queries)[3];
  Expr cosines = TRY(cache_rows(node, kCosines, length));
  Expr sines = TRY(cache_rows(node, kSines, length));
  const int64_t half = shape_of(cosines)[3];
  if (shape_of(sines)[3] != half || half < 1 || 2 * half > size)
    return bad_model("caches of shapes {} and {} for heads of size {}",
                     shape_to_string(node.shape(kCosines)), shape_to_string(node.shape(kSines)),
                     size);
  const bool interleaved = TRY(node.flag("rotary_interleaved", false));
  for (Expr* operand : {&heads.queries, &heads.keys})
    *operand = TRY(rotate(node, *operand, cosines, sines, interleaved));
  return {};
}

Result<Outputs> convert_grouped_attention(NodeContext& node) {
  const int64_t num_heads = TRY(node.integer("num_heads"));
  Heads heads = TRY(split_inputs(node, num_heads, TRY(node.integer("kv_num_heads"))));
  if (heads.num_queries() != heads.num_keys())
    return bad_model("{} queries for {} keys", heads.num_queries(), heads.num_keys());
  TRY(refuse_what_is_left_out(node, heads.num_queries()));
  if (TRY(node.flag("do_rotary", false))) TRY(rotate_heads(node, heads));
  const Expr keys = heads.keys, values = heads.values;
  heads.keys = TRY(share_heads(node, keys, num_heads));
  heads.values = TRY(share_heads(node, values, num_heads));
  Expr bias = node.has(kBias) ? node.in(kBias) : nullptr;
  if (bias != nullptr) TRY(check_attention_bias(bias, heads));
  Causality causality{TRY(node.flag("causal", true)), 0};
  const int64_t window = TRY(node.integer("local_window_size", -1));
  if (window > 0 && window < heads.num_keys()) causality.window = window;
  Expr result = TRY(attend(node, heads, bias, causality, TRY(read_scale(node, heads)),
                           TRY(node.real("softcap", 0.0))));
  return Outputs{result, keys, values};
}

}  // namespace

ConverterRows microsoft_grouped_attention_converters() {
  return {
      {"GroupQueryAttention", 1, 16, convert_grouped_attention},
  };
}

}  // namespace collage::frontend
