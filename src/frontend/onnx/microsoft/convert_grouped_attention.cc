// GroupQueryAttention of com.microsoft: causal attention where each head of keys and values serves
// several heads of queries.
//
// Over a whole sequence, total_sequence_length positions, seqlens_k only says where a sequence
// ends, and what stands behind is not read by what stands before. With fewer positions than that,
// those before them are in a cache, right-padded: sequence b of seqlens_k[b] + 1 positions has its
// queries at the last of them, and the rows of its cache before those. The present cache has the
// new rows behind them and zeros behind its end.
#include <algorithm>

#include "frontend/onnx/microsoft/attention.h"

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
  kScoreBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};

Status refuse_what_is_left_out(NodeContext& node) {
  TRY(refuse_input(node, kSink, "head_sink"));
  TRY(refuse_input(node, kKeyScale, "quantised types (k_scale)"));
  TRY(refuse_input(node, kValueScale, "quantised types (v_scale)"));
  TRY(refuse_input(node, kQueryNorm, "q_norm_weight"));
  TRY(refuse_input(node, kKeyNorm, "k_norm_weight"));
  if (TRY(node.integer("smooth_softmax", 0)) == 1) return unsupported("smooth_softmax");
  if (TRY(node.flag("sliding_window_cache", false)))
    return unsupported("a cache of keys and values (sliding_window_cache)");
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

// Where the queries stand, and what is known of the positions before them.
struct Places {
  int64_t past = 0;     // rows of the cache
  int64_t present = 0;  // positions that are attended to, those of the new cache
  Expr before;  // (batch, 1): positions before the queries, int64; null where there are none
};

Status check_past(NodeContext& node, const Heads& heads) {
  const Shape& keys = shape_of(heads.keys);
  for (size_t cache : {kPastKey, kPastValue}) {
    const Shape& shape = node.shape(cache);
    if (shape.size() != 4 || shape[0] != keys[0] || shape[1] != keys[1] || shape[3] != keys[3] ||
        shape[2] != node.shape(kPastKey)[2])
      return bad_model("a cache of shape {} before keys of shape {}", shape_to_string(shape),
                       shape_to_string(keys));
  }
  return {};
}

Result<Places> read_places(NodeContext& node, const Heads& heads) {
  const int64_t length = heads.num_queries();
  Places places;
  places.present = length;
  if (node.has(kPastKey) != node.has(kPastValue))
    return bad_model("only one of past_key and past_value is given");
  if (node.has(kPastKey)) {
    TRY(check_past(node, heads));
    places.past = node.shape(kPastKey)[2];
  }
  int64_t total = length;
  if (places.past > 0 || (node.has(kTotalLength) && node.known(node.in(kTotalLength)) != nullptr)) {
    const Ints given = TRY(node.constant_ints(kTotalLength, "total_sequence_length"));
    if (given.size() != 1) return bad_model("total_sequence_length is no scalar");
    total = given[0];
  }
  places.present = std::max(total, places.past);
  if (total == length) return places;
  if (total < length || total > length + places.past)
    return unsupported("{} positions in all, {} are new and {} in the cache", total, length,
                       places.past);
  if (num_elements(node.shape(kSequenceLengths)) != heads.batch())
    return bad_model("seqlens_k of shape {} for {} sequences",
                     shape_to_string(node.shape(kSequenceLengths)), heads.batch());
  Expr last = TRY(node.cast(node.in(kSequenceLengths), DType::kInt64));
  last = TRY(node.reshape(last, {heads.batch(), 1}));
  Expr count = TRY(node.scalar(DType::kInt64, static_cast<double>(length - 1)));
  Expr before = TRY(node.call("subtract", {last, count}));
  places.before = TRY(
      node.call("clip", {before}, {{"a_min", 0.0}, {"a_max", static_cast<double>(places.past)}}));
  return places;
}

// Row j of sequence b is row j of its cache, behind that of what is new, and then zeros: rows of
// cache, new ones and a row of zeros, one after the other, of which each takes its own.
Result<Expr> present_rows(NodeContext& node, size_t cache, const Expr& fresh,
                          const Places& places) {
  const Shape shape = shape_of(fresh);
  const int64_t batch = shape[0], heads = shape[1], length = shape[2], size = shape[3];
  Expr zeros = TRY(node.full(dtype_of(fresh), {batch, heads, 1, size}, 0));
  const int64_t rows = places.past + length + 1;
  Expr all =
      places.past == 0 ? make_tuple({fresh, zeros}) : make_tuple({node.in(cache), fresh, zeros});
  all = TRY(node.call("concatenate", {all}, {{"axis", int64_t{2}}}));
  all = TRY(node.reshape(all, {batch * heads * rows, size}));
  auto number = [&](int64_t value) {
    return node.scalar(DType::kInt64, static_cast<double>(value));
  };
  Expr place = TRY(positions(node, places.present, 0, {1, places.present}));
  Expr before = places.before != nullptr ? places.before : TRY(node.full(DType::kInt64, {1, 1}, 0));
  Expr behind = TRY(node.call("subtract", {place, before}));
  behind = TRY(node.call("minimum", {behind, TRY(number(length))}));
  behind = TRY(node.call("add", {behind, TRY(number(places.past))}));
  Expr row = TRY(node.call("where", {TRY(node.call("less", {place, before})), place, behind}));
  row = TRY(node.reshape(row, {shape_of(row)[0], 1, places.present}));
  Expr first = TRY(positions(node, batch * heads, 0, {batch, heads, 1}));
  first = TRY(node.call("multiply", {first, TRY(number(rows))}));
  return node.call("take", {all, TRY(node.call("add", {row, first}))}, {{"axis", int64_t{0}}});
}

// A row for each position of queries behind a cache: their places, or the given positions.
Result<Expr> rows_behind(NodeContext& node, size_t cache, const Heads& heads, const Expr& before) {
  const int64_t batch = heads.batch(), length = heads.num_queries();
  Expr place;
  if (node.has(kPositions)) {
    if (num_elements(node.shape(kPositions)) != batch * length)
      return bad_model("position_ids of shape {}", shape_to_string(node.shape(kPositions)));
    place = TRY(node.reshape(node.in(kPositions), {batch, length}));
  } else {
    place = TRY(node.call("add", {TRY(positions(node, length, 0, {1, length})), before}));
  }
  return node.call("take", {node.in(cache), place}, {{"axis", int64_t{0}}});
}

// The first rows of a cache, or those from the first of the given positions on.
Result<Expr> first_rows(NodeContext& node, size_t cache, int64_t length) {
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
  return rows;
}

Result<Expr> cache_rows(NodeContext& node, size_t cache, const Heads& heads, const Places& places) {
  if (!node.has(cache)) return bad_model("do_rotary without cos_cache or sin_cache");
  const int64_t length = heads.num_queries();
  if (node.rank(cache) != 2 || node.shape(cache)[0] < length)
    return bad_model("a cache of shape {} for {} positions", shape_to_string(node.shape(cache)),
                     length);
  Expr rows = places.before == nullptr ? TRY(first_rows(node, cache, length))
                                       : TRY(rows_behind(node, cache, heads, places.before));
  return beside_heads(node, rows, 1);
}

Status rotate_heads(NodeContext& node, Heads& heads, const Places& places) {
  const int64_t size = shape_of(heads.queries)[3];
  Expr cosines = TRY(cache_rows(node, kCosines, heads, places));
  Expr sines = TRY(cache_rows(node, kSines, heads, places));
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
  TRY(refuse_what_is_left_out(node));
  const Places places = TRY(read_places(node, heads));
  if (TRY(node.flag("do_rotary", false))) TRY(rotate_heads(node, heads, places));
  const bool cached = places.present != heads.num_queries() || places.before != nullptr;
  if (cached) {
    heads.keys = TRY(present_rows(node, kPastKey, heads.keys, places));
    heads.values = TRY(present_rows(node, kPastValue, heads.values, places));
  }
  const Expr keys = heads.keys, values = heads.values;
  heads.keys = TRY(share_heads(node, keys, num_heads));
  heads.values = TRY(share_heads(node, values, num_heads));
  Expr bias = node.has(kScoreBias) ? node.in(kScoreBias) : nullptr;
  if (bias != nullptr) TRY(check_attention_bias(bias, heads));
  Causality causality{TRY(node.flag("causal", true)), 0};
  const int64_t window = TRY(node.integer("local_window_size", -1));
  if (window > 0 && window < heads.num_keys()) causality.window = window;
  if (cached) {
    if (!causality.causal) return unsupported("a cache of keys and values without causality");
    bias =
        TRY(sum_of(node, bias,
                   TRY(causal_mask(node, heads, places.present, places.before, causality.window))));
    causality = {};
  }
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
