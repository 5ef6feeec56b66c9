// Attention and rotary embeddings. Attention becomes nn.attention on (batch, heads, length, size)
// operands with one additive mask; where the node caps its scores or gives them out, it is written
// out as products and a softmax.
#include <limits>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/attention_parts.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rank 4 is (batch, heads, length, size) already.
Result<Expr> with_heads(NodeContext& node, const Expr& data, const char* attribute) {
  if (rank_of(data) == 4) return data;
  return split_heads(node, data, TRY(node.integer(attribute)), attribute);
}

struct Bias {
  Expr allowed;                 // booleans, or null
  Expr added;                   // or null
  bool may_block_rows = false;  // a query may be left without any key
};

// The mask given as an input; a short one is padded with positions that are not allowed.
Status add_given_mask(NodeContext& node, Bias& bias, int64_t keys) {
  if (!node.has(3)) return {};
  Expr mask = node.in(3);
  if (rank_of(mask) < 1) return bad_model("the mask is a scalar");
  const int64_t missing = keys - shape_of(mask).back();
  const bool boolean = dtype_of(mask) == DType::kBool;
  if (missing > 0 && shape_of(mask).back() != 1) {
    IntLists widths(static_cast<size_t>(rank_of(mask)), Ints{0, 0});
    widths.back() = {0, missing};
    Expr fill = TRY(node.scalar_like(mask, boolean ? 0.0 : -kInfinity));
    mask = TRY(node.call("nn.pad", {mask, fill},
                         {{"pad_width", widths}, {"pad_mode", std::string("constant")}}));
  }
  if (boolean) {
    bias.allowed = mask;
    bias.may_block_rows = true;
  } else {
    bias.added = mask;
  }
  return {};
}

// Causality, windows and padded keys as one condition on positions: query i stands at position
// i + offset, where offset is a number or, with padded keys, one value a batch.
Status add_positions(NodeContext& node, Bias& bias, int64_t queries, int64_t keys, int64_t past) {
  const bool causal = TRY(node.flag("is_causal", false));
  const int64_t left = TRY(node.integer("left_window_size", -1));
  const int64_t right = TRY(node.integer("right_window_size", -1));
  const bool padded = node.has(6);
  if (!causal && left < 0 && right < 0 && !padded) return {};
  if (left > kMaxDimension || right > kMaxDimension)
    return bad_model("window sizes {} and {}", left, right);
  Expr key = TRY(positions(node, keys, 0, {1, keys}));
  Expr query = TRY(positions(node, queries, past, {queries, 1}));
  if (padded) {
    const Shape& shape = node.shape(6);
    if (shape.size() != 1) return bad_model("nonpad_kv_seqlen is no vector");
    Expr lengths = TRY(node.cast(node.in(6), DType::kInt64));
    lengths = TRY(node.reshape(lengths, {shape[0], 1, 1, 1}));
    bias.allowed = TRY(both(node, bias.allowed, TRY(node.call("less", {key, lengths}))));
    Expr count = TRY(node.scalar(DType::kInt64, static_cast<double>(queries)));
    Expr offset = TRY(node.call("subtract", {lengths, count}));
    query = TRY(node.call("add", {query, offset}));
    bias.may_block_rows = true;
  }
  auto allow = [&](const char* compare, int64_t shift) -> Status {
    Expr amount = TRY(node.scalar(DType::kInt64, static_cast<double>(shift)));
    Expr limit = TRY(node.call("add", {query, amount}));
    bias.allowed = TRY(both(node, bias.allowed, TRY(node.call(compare, {key, limit}))));
    return {};
  };
  if (causal) TRY(allow("less_equal", 0));
  if (right >= 0) TRY(allow("less_equal", right));
  if (left >= 0) TRY(allow("greater_equal", -left));
  if (queries + past > keys || left >= 0) bias.may_block_rows = true;
  return {};
}

Result<Expr> additive(NodeContext& node, const Bias& bias, DType dtype) {
  if (bias.allowed == nullptr) return bias.added;
  return sum_of(node, bias.added, TRY(additive_mask(node, bias.allowed, dtype, -kInfinity)));
}

// A query that may see no key at all gives zeros, not NaN.
Result<Expr> clear_blocked_rows(NodeContext& node, const Bias& bias, const Expr& data) {
  if (!bias.may_block_rows || bias.allowed == nullptr) return data;
  Expr any = TRY(node.call("any", {bias.allowed}, {{"axis", Ints{-1}}, {"keepdims", true}}));
  if (const Tensor* known = node.known(any)) {
    bool all = true;
    for (int64_t i = 0; i < known->size(); ++i) all &= known->element_as_int64(i) != 0;
    if (all) return data;
  }
  return node.call("where", {any, data, TRY(node.scalar_like(data, 0))});
}

Result<Outputs> convert_attention(NodeContext& node) {
  const bool merged = node.rank(0) == 3;
  Expr q = TRY(with_heads(node, node.in(0), "q_num_heads"));
  Expr k = TRY(with_heads(node, node.in(1), "kv_num_heads"));
  Expr v = TRY(with_heads(node, node.in(2), "kv_num_heads"));
  int64_t past = 0;
  if (node.has(4) != node.has(5)) return bad_model("only one of past_key and past_value is given");
  if (node.has(4)) {
    if (node.rank(4) != 4) return bad_model("past_key has rank {}, not 4", node.rank(4));
    past = node.shape(4)[2];
    k = TRY(node.call("concatenate", {make_tuple({node.in(4), k})}, {{"axis", int64_t{2}}}));
    v = TRY(node.call("concatenate", {make_tuple({node.in(5), v})}, {{"axis", int64_t{2}}}));
  }
  const Expr present_key = k, present_value = v;
  const Shape& shape = shape_of(q);
  const int64_t heads = shape[1], queries = shape[2], keys = shape_of(k)[2];
  k = TRY(share_heads(node, k, heads));
  v = TRY(share_heads(node, v, heads));
  const double scale = TRY(node.real("scale", usual_scale(shape[3])));
  const double cap = TRY(node.real("softcap", 0.0));
  Bias bias;
  TRY(add_given_mask(node, bias, keys));
  TRY(add_positions(node, bias, queries, keys, past));
  Expr mask = TRY(additive(node, bias, dtype_of(q)));

  Expr result, probabilities;
  Scores scores;
  if (cap != 0 || node.wants(3)) {
    scores = TRY(write_out_scores(node, q, k, mask, scale, cap));
    probabilities = TRY(node.call("nn.softmax", {scores.biased}, {{"axis", int64_t{-1}}}));
    probabilities = TRY(clear_blocked_rows(node, bias, probabilities));
    result = TRY(node.call("nn.matmul", {probabilities, v}));
  } else {
    std::vector<Expr> args = {q, k, v};
    if (mask != nullptr) args.push_back(mask);
    result = TRY(node.call("nn.attention", std::move(args), {{"scale", scale}}));
    result = TRY(clear_blocked_rows(node, bias, result));
  }
  Outputs outputs = {merged ? TRY(merge_heads(node, result)) : result, present_key, present_value};
  if (node.wants(3)) {
    const int64_t mode = TRY(node.integer("qk_matmul_output_mode", 0));
    if (mode < 0 || mode > 3) return bad_model("qk_matmul_output_mode is {}", mode);
    const Expr* stages[] = {&scores.raw, &scores.capped, &scores.biased, &probabilities};
    outputs.push_back(*stages[mode]);
  }
  return outputs;
}

// Heads stand behind the positions in data of rank 3, before them in data of rank 4.
Result<Expr> convert_rotary(NodeContext& node) {
  const bool merged = node.rank(0) == 3;
  Expr data = node.in(0);
  if (merged) {
    const int64_t heads = TRY(node.integer("num_heads"));
    const Shape& shape = node.shape(0);
    if (heads < 1 || shape[2] % heads != 0)
      return bad_model("num_heads {} does not divide {}", heads, shape[2]);
    data = TRY(node.reshape(data, {shape[0], shape[1], heads, shape[2] / heads}));
  } else if (node.rank(0) != 4) {
    return bad_model("data of rank {}, not 3 or 4", node.rank(0));
  }
  const int64_t size = shape_of(data)[3];
  int64_t rotated = TRY(node.integer("rotary_embedding_dim", 0));
  if (rotated == 0) rotated = size;
  if (rotated < 2 || rotated > size || rotated % 2 != 0)
    return bad_model("rotary_embedding_dim {} does not fit head size {}", rotated, size);
  const bool interleaved = TRY(node.flag("interleaved", false));
  Expr factors[2];
  for (size_t i = 0; i < 2; ++i) {
    Expr cache = node.in(1 + i);
    if (node.has(3)) cache = TRY(node.call("take", {cache, node.in(3)}, {{"axis", int64_t{0}}}));
    if (rank_of(cache) != 3 || shape_of(cache)[2] != rotated / 2)
      return bad_model("a cache has shape {}; its last dimension must be {}",
                       shape_to_string(shape_of(cache)), rotated / 2);
    Shape shape = shape_of(cache);
    shape.insert(shape.begin() + (merged ? 2 : 1), 1);
    factors[i] = TRY(node.reshape(cache, std::move(shape)));
  }
  Expr result = TRY(rotate(node, data, factors[0], factors[1], interleaved));
  return node.reshape(result, node.shape(0));
}

// Attention whose scores and probabilities graphs of the model may change; without those it is
// nn.attention.
Result<Expr> convert_flex_attention(NodeContext& node) {
  for (const char* graph : {"score_mod", "prob_mod"})
    if (node.has_attr(graph)) return unsupported("a graph as attribute {}", graph);
  for (size_t i = 0; i < 3; ++i)
    if (node.rank(i) != 4) return bad_model("input {} has rank {}, not 4", i, node.rank(i));
  const int64_t heads = node.shape(0)[1];
  Expr keys = TRY(share_heads(node, node.in(1), heads));
  Expr values = TRY(share_heads(node, node.in(2), heads));
  const double scale = TRY(node.real("scale", usual_scale(node.shape(0)[3])));
  return node.call("nn.attention", {node.in(0), keys, values}, {{"scale", scale}});
}

}  // namespace

ConverterRows preview_converters() {
  return {
      {"FlexAttention", 3, 3, single(convert_flex_attention)},
  };
}

ConverterRows attention_converters() {
  return {
      {"Attention", 3, 7, convert_attention},
      {"RotaryEmbedding", 3, 4, single(convert_rotary)},
  };
}

}  // namespace collage::frontend
