// Operators of state-space and linear-attention models, which carry a state from call to call:
// LinearAttention, unrolled over its positions, and CausalConvWithState.
#include <cmath>

#include "frontend/onnx/operators/attention_parts.h"
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/matrix_product.h"

namespace collage::frontend {

namespace {

constexpr int64_t kMaxPositions = 2048;  // each is half a dozen calls

// Operands as (batch, heads, length, size), in single precision at least, as the operator asks.
struct LinearHeads {
  Expr queries, keys, values;
  Expr decay;  // its exponential, (batch, heads of keys, length, 1 or size); null without gates
  Expr beta;   // (batch, 1 or heads of keys, length, 1), or null
  int64_t length = 0, groups = 1;
};

// Input `i` of rank 3, its last dimension cut into heads.
Result<Expr> heads_of(NodeContext& node, size_t i, int64_t heads, const char* name) {
  return node.widened(TRY(split_heads(node, node.in(i), heads, name)));
}

Result<LinearHeads> read_linear_heads(NodeContext& node, bool gates, bool corrects) {
  if (node.has(4) != gates) return bad_model("decay does not fit the update_rule");
  if (node.has(5) != corrects) return bad_model("beta does not fit the update_rule");
  const int64_t query_heads = TRY(node.integer("q_num_heads"));
  const int64_t heads = TRY(node.integer("kv_num_heads"));
  if (heads < 1 || query_heads < 1 || query_heads % heads != 0)
    return bad_model("q_num_heads {} is no multiple of kv_num_heads {}", query_heads, heads);
  LinearHeads h;
  h.queries = TRY(heads_of(node, 0, query_heads, "q_num_heads"));
  h.keys = TRY(heads_of(node, 1, heads, "kv_num_heads"));
  h.values = TRY(heads_of(node, 2, heads, "kv_num_heads"));
  h.groups = query_heads / heads;
  const Shape &keys = shape_of(h.keys), &values = shape_of(h.values),
              &queries = shape_of(h.queries);
  h.length = queries[2];
  if (keys[0] != queries[0] || values[0] != queries[0] || keys[2] != h.length ||
      values[2] != h.length || keys[3] != queries[3])
    return bad_model("queries {}, keys {} and values {} do not fit", shape_to_string(node.shape(0)),
                     shape_to_string(node.shape(1)), shape_to_string(node.shape(2)));
  for (size_t i = 0; i < 3; ++i)
    if (num_elements(node.shape(i)) == 0)
      return unsupported("input {} of shape {}", i, shape_to_string(node.shape(i)));
  if (h.length > kMaxPositions)
    return unsupported("{} positions, at most {} are unrolled", h.length, kMaxPositions);
  for (size_t i : {size_t{4}, size_t{5}})
    if (node.has(i) &&
        (node.rank(i) != 3 || node.shape(i)[0] != queries[0] || node.shape(i)[1] != h.length))
      return bad_model("input {} has shape {}", i, shape_to_string(node.shape(i)));
  if (gates) {
    h.decay = TRY(node.call("exp", {TRY(heads_of(node, 4, heads, "kv_num_heads"))}));
    if (shape_of(h.decay)[3] != 1 && shape_of(h.decay)[3] != keys[3])
      return bad_model("decay has shape {}", shape_to_string(node.shape(4)));
  }
  if (corrects) {
    const int64_t count = node.shape(5)[2];
    if (count != 1 && count != heads)
      return bad_model("beta has shape {}", shape_to_string(node.shape(5)));
    h.beta = TRY(heads_of(node, 5, count, "beta"));
  }
  return h;
}

// One position of an operand: (batch, heads, 1, size).
Result<Expr> position(NodeContext& node, const Expr& data, int64_t at) {
  return node.call("strided_slice", {data},
                   {{"begin", Ints{at}}, {"end", Ints{at + 1}}, {"axes", Ints{2}}});
}

Result<Expr> multiplied(NodeContext& node, const Expr& a, const Expr& b, bool transpose_a = false) {
  return node.call("nn.matmul", {a, b}, {{"transpose_a", transpose_a}});
}

// state · decay, then += kᵀ · v, where v may first be corrected by what the state gives for k:
// (batch, heads, size of keys, size of values).
Result<Expr> updated(NodeContext& node, const LinearHeads& h, Expr state, int64_t at) {
  if (h.decay != nullptr) {
    Expr factor = TRY(position(node, h.decay, at));
    const Shape& shape = shape_of(factor);
    factor = TRY(node.reshape(factor, {shape[0], shape[1], shape[3], 1}));
    state = TRY(node.call("multiply", {state, factor}));
  }
  Expr key = TRY(position(node, h.keys, at)), value = TRY(position(node, h.values, at));
  if (h.beta != nullptr) {
    Expr error = TRY(node.call("subtract", {value, TRY(multiplied(node, key, state))}));
    value = TRY(node.call("multiply", {TRY(position(node, h.beta, at)), error}));
  }
  return node.call("add", {state, TRY(multiplied(node, key, value, true))});
}

Result<Expr> first_state(NodeContext& node, const LinearHeads& h) {
  const Shape &keys = shape_of(h.keys), &values = shape_of(h.values);
  const Shape shape = {keys[0], keys[1], keys[3], values[3]};
  if (!node.has(3)) return node.full(dtype_of(h.keys), shape, 0);
  if (node.shape(3) != shape)
    return bad_model("past_state has shape {}, not {}", shape_to_string(node.shape(3)),
                     shape_to_string(shape));
  return node.cast(node.in(3), dtype_of(h.keys));
}

Result<Outputs> convert_linear_attention(NodeContext& node) {
  const std::string rule = TRY(node.text("update_rule", "gated_delta"));
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    return bad_model("update_rule '{}' is unknown", rule);
  const LinearHeads h =
      TRY(read_linear_heads(node, rule.starts_with("gated"), rule.ends_with("delta")));
  double scale = TRY(node.real("scale", 0.0));
  if (scale == 0) scale = usual_scale(shape_of(h.queries)[3]);
  Expr queries = TRY(scaled(node, h.queries, scale));
  Expr state = TRY(first_state(node, h));
  std::vector<Expr> results;
  for (int64_t at = 0; at < h.length; ++at) {
    state = TRY(updated(node, h, state, at));
    // The queries that share a head of keys are rows of one product.
    Expr query = TRY(position(node, queries, at));
    const Shape& keys = shape_of(h.keys);
    query = TRY(node.reshape(query, {keys[0], keys[1], h.groups, keys[3]}));
    Expr read = TRY(multiplied(node, query, state));
    results.push_back(
        TRY(node.reshape(read, {keys[0], 1, keys[1] * h.groups * shape_of(read)[3]})));
  }
  Expr result = results[0];
  if (results.size() > 1)
    result = TRY(node.call("concatenate", {make_tuple(results)}, {{"axis", int64_t{1}}}));
  const DType state_type = node.has(3) ? node.dtype(3) : node.dtype(0);
  return Outputs{TRY(node.cast(result, node.dtype(0))), TRY(node.cast(state, state_type))};
}

// A convolution of each channel over what came before: past inputs, zeros where none are given,
// stand in front of the data, and the last of all are given on.
Result<Outputs> convert_causal_conv(NodeContext& node) {
  const std::string activation = TRY(node.text("activation", "none"));
  if (activation != "none" && activation != "silu" && activation != "swish")
    return bad_model("activation '{}' is unknown", activation);
  const Shape &data = node.shape(0), &weight = node.shape(1);
  if (data.size() != 3 || weight.size() != 3 || weight[0] != data[1] || weight[1] != 1 ||
      weight[2] < 1)
    return bad_model("a weight of shape {} for data of shape {}", shape_to_string(weight),
                     shape_to_string(data));
  const int64_t past = weight[2] - 1;
  const Shape state = {data[0], data[1], past};
  if (node.has(3) && node.shape(3) != state)
    return bad_model("past_state has shape {}, not {}", shape_to_string(node.shape(3)),
                     shape_to_string(state));
  Expr padded = node.in(0), present = node.has(3) ? node.in(3) : nullptr;
  if (present == nullptr) present = TRY(node.full(node.dtype(0), state, 0));
  if (past > 0) {
    padded = TRY(node.call("concatenate", {make_tuple({present, padded})}, {{"axis", int64_t{2}}}));
    present = TRY(
        node.call("strided_slice", {padded},
                  {{"begin", Ints{data[2]}}, {"end", Ints{data[2] + past}}, {"axes", Ints{2}}}));
  }
  Expr result = TRY(node.call("nn.conv1d", {padded, node.in(1)}, {{"groups", data[1]}}));
  if (node.has(2))
    result = TRY(node.call("nn.bias_add", {result, node.in(2)}, {{"axis", int64_t{1}}}));
  if (activation != "none") result = TRY(node.call("nn.silu", {result}));
  return Outputs{std::move(result), std::move(present)};
}

}  // namespace

ConverterRows linear_attention_converters() {
  return {
      {"CausalConvWithState", 2, 4, convert_causal_conv},
      {"LinearAttention", 3, 6, convert_linear_attention},
  };
}

}  // namespace collage::frontend
