// Attention (whose projections are its own, as one product with merged weights) and
// MultiHeadAttention of the domain com.microsoft, as nn.attention. Without a cache of earlier keys
// and values: each call sees all of its sequence.
#include "frontend/onnx/microsoft/attention.h"

namespace collage::frontend {

namespace {

constexpr double kFilter = -10000;  // added to the scores of hidden keys, unless the node says more

// What the node's mask and bias add to the scores.
Result<Expr> read_mask(NodeContext& node, size_t mask, size_t bias, const Heads& heads) {
  const double filter = TRY(node.real("mask_filter_value", kFilter));
  Expr result;
  if (node.has(mask)) result = TRY(integer_mask(node, node.in(mask), heads, filter));
  if (!node.has(bias)) return result;
  TRY(check_attention_bias(node.in(bias), heads));
  return sum_of(node, node.in(bias), result);
}

Result<Expr> attend_with_mask(NodeContext& node, size_t mask, size_t bias, const Heads& heads) {
  Expr added = TRY(read_mask(node, mask, bias, heads));
  // A single query sees everything, whatever the attribute says.
  const bool causal = TRY(node.flag("unidirectional", false)) && heads.num_queries() > 1;
  if (causal && heads.num_queries() != heads.num_keys())
    return unsupported("unidirectional over {} queries and {} keys", heads.num_queries(),
                       heads.num_keys());
  return attend(node, heads, added, {causal, 0}, TRY(read_scale(node, heads)));
}

// The widths of queries, keys and values in the merged weights.
Result<Ints> projection_widths(NodeContext& node, int64_t heads) {
  const Shape& weights = node.shape(1);
  if (node.rank(0) != 3 || weights.size() != 2)
    return bad_model("input of shape {} and weights of shape {}", shape_to_string(node.shape(0)),
                     shape_to_string(weights));
  const Ints widths = TRY(node.ints("qkv_hidden_sizes", Ints(3, weights[1] / 3)));
  bool fits = widths.size() == 3 && heads > 0;
  int64_t sum = 0;
  for (size_t i = 0; fits && i < 3; ++i) {
    fits = widths[i] > 0 && widths[i] <= weights[1] && widths[i] % heads == 0;
    sum += widths[i];
  }
  if (!fits || sum != weights[1] || widths[0] != widths[1])
    return bad_model("{} heads of hidden sizes {} do not fit weights of shape {}", heads,
                     shape_to_string(widths), shape_to_string(weights));
  return widths;
}

Result<Outputs> convert_microsoft_attention(NodeContext& node) {
  TRY(refuse_input(node, 4, "a cache of keys and values (past)"));
  if (TRY(node.flag("past_present_share_buffer", false)))
    return unsupported("a cache of keys and values (past_present_share_buffer)");
  if (TRY(node.flag("do_rotary", false))) return unsupported("do_rotary");
  const int64_t num_heads = TRY(node.integer("num_heads"));
  const Ints widths = TRY(projection_widths(node, num_heads));
  Expr product = TRY(node.call("nn.matmul", {node.in(0), node.in(1)}));
  if (node.has(2))
    product = TRY(node.call("nn.bias_add", {product, node.in(2)}, {{"axis", int64_t{-1}}}));
  Expr parts = TRY(node.call(
      "split", {product},
      {{"indices_or_sections", Ints{widths[0], widths[0] + widths[1]}}, {"axis", int64_t{2}}}));
  Heads heads;
  Expr* const fields[] = {&heads.queries, &heads.keys, &heads.values};
  for (int64_t i = 0; i < 3; ++i)
    *fields[i] = TRY(split_heads(node, node.item(parts, i), num_heads, "num_heads"));
  Outputs outputs = {TRY(attend_with_mask(node, 3, 5, heads))};
  if (node.wants(1) && widths[0] == widths[2])
    outputs.push_back(
        TRY(node.call("stack", {make_tuple({heads.keys, heads.values})}, {{"axis", int64_t{0}}})));
  return outputs;
}

// Queries, keys and values with the node's bias, which holds one after the other.
Result<Heads> biased_heads(NodeContext& node, int64_t num_heads) {
  Expr parts[3];
  for (size_t i = 0; i < 3; ++i) parts[i] = node.in(i);
  if (node.has(3)) {
    Ints ends;
    for (const Expr& part : parts) {
      if (rank_of(part) != 3) return unsupported("a bias beside keys that are split into heads");
      ends.push_back((ends.empty() ? 0 : ends.back()) + shape_of(part)[2]);
    }
    if (node.shape(3) != Shape{ends[2]})
      return bad_model("bias of shape {}, not {}", shape_to_string(node.shape(3)),
                       shape_to_string({ends[2]}));
    Expr biases =
        TRY(node.call("split", {node.in(3)},
                      {{"indices_or_sections", Ints{ends[0], ends[1]}}, {"axis", int64_t{0}}}));
    for (size_t i = 0; i < 3; ++i)
      parts[i] =
          TRY(node.call("nn.bias_add", {parts[i], node.item(biases, static_cast<int64_t>(i))},
                        {{"axis", int64_t{-1}}}));
  }
  // Keys and values of rank 4 have their heads already.
  Heads heads;
  Expr* const fields[] = {&heads.queries, &heads.keys, &heads.values};
  for (size_t i = 0; i < 3; ++i)
    *fields[i] = rank_of(parts[i]) == 4 && i > 0
                     ? parts[i]
                     : TRY(split_heads(node, parts[i], num_heads, "num_heads"));
  return heads;
}

Result<Outputs> convert_multi_head_attention(NodeContext& node) {
  if (!node.has(1) || !node.has(2) || node.rank(0) == 5 || node.rank(1) == 5)
    return unsupported("queries, keys and values packed into one input");
  for (size_t i : {size_t{6}, size_t{7}})
    TRY(refuse_input(node, i, "a cache of keys and values (past_key, past_value)"));
  for (size_t i : {size_t{8}, size_t{9}})
    TRY(refuse_input(node, i, "a cache of keys and values (past_sequence_length)"));
  const Heads heads = TRY(biased_heads(node, TRY(node.integer("num_heads"))));
  return Outputs{TRY(attend_with_mask(node, 4, 5, heads)), heads.keys, heads.values};
}

}  // namespace

ConverterRows microsoft_attention_converters() {
  return {
      {"Attention", 2, 7, convert_microsoft_attention},
      {"MultiHeadAttention", 1, 10, convert_multi_head_attention},
  };
}

}  // namespace collage::frontend
