#include "frontend/onnx/microsoft/attention.h"

#include <limits>

namespace collage::frontend {

namespace {

// Whether position j of the keys lies from `begin` on and before `end`, each null or one a batch.
Result<Expr> between(NodeContext& node, const Expr& begin, const Expr& end, const Heads& heads) {
  Expr key = TRY(positions(node, heads.num_keys(), 0, {1, 1, 1, heads.num_keys()}));
  Expr allowed;
  auto require = [&](const Expr& bound, const char* compare) -> Status {
    if (bound == nullptr) return {};
    Expr limit = TRY(node.reshape(TRY(node.cast(bound, DType::kInt64)), {heads.batch(), 1, 1, 1}));
    allowed = TRY(both(node, allowed, TRY(node.call(compare, {key, limit}))));
    return {};
  };
  TRY(require(end, "less"));
  TRY(require(begin, "greater_equal"));
  return allowed;
}

}  // namespace

Result<Expr> integer_mask(NodeContext& node, const Expr& mask, const Heads& heads, double filter) {
  const Shape shape = shape_of(mask);
  const int64_t batch = heads.batch(), keys = heads.num_keys();
  Expr allowed;
  if (shape == Shape{batch, keys} || shape == Shape{batch, heads.num_queries(), keys}) {
    allowed = TRY(node.call("greater", {mask, TRY(node.scalar_like(mask, 0))}));
    allowed = TRY(node.reshape(allowed, {batch, 1, shape.size() == 3 ? shape[1] : 1, keys}));
  } else if (shape == Shape{batch, 1} || shape == Shape{1, 1}) {
    return Expr();  // the same for all keys
  } else if (shape == Shape{batch}) {
    allowed = TRY(between(node, nullptr, mask, heads));
  } else if (shape == Shape{2 * batch}) {
    Expr halves = TRY(
        node.call("split", {mask}, {{"indices_or_sections", Ints{batch}}, {"axis", int64_t{0}}}));
    allowed = TRY(between(node, node.item(halves, 1), node.item(halves, 0), heads));
  } else {
    return unsupported("a mask of shape {} over {} batches and {} keys", shape_to_string(shape),
                       batch, keys);
  }
  return additive_mask(node, allowed, dtype_of(heads.queries), filter);
}

Result<Expr> causal_mask(NodeContext& node, const Heads& heads, int64_t keys, const Expr& before,
                         int64_t window) {
  const int64_t queries = heads.num_queries();
  const bool placed = before != nullptr;
  Expr key = TRY(positions(node, keys, 0, placed ? Shape{1, 1, 1, keys} : Shape{1, keys}));
  Expr query =
      TRY(positions(node, queries, 0, placed ? Shape{1, 1, queries, 1} : Shape{queries, 1}));
  if (placed) {
    Expr first = TRY(node.reshape(before, {heads.batch(), 1, 1, 1}));
    query = TRY(node.call("add", {query, first}));
  }
  Expr allowed = TRY(node.call("less_equal", {key, query}));
  if (window > 0) {
    Expr width = TRY(node.scalar(DType::kInt64, static_cast<double>(window)));
    Expr last = TRY(node.call("subtract", {query, width}));
    allowed = TRY(both(node, allowed, TRY(node.call("greater", {key, last}))));
  }
  return additive_mask(node, allowed, dtype_of(heads.queries),
                       -std::numeric_limits<double>::infinity());
}

Status check_attention_bias(const Expr& bias, const Heads& heads) {
  const Shape& shape = shape_of(bias);
  const Shape full = {heads.batch(), shape_of(heads.queries)[1], heads.num_queries(),
                      heads.num_keys()};
  bool fits = shape.size() == 4;
  for (size_t i = 0; fits && i < 4; ++i) fits = shape[i] == full[i] || (i < 2 && shape[i] == 1);
  if (!fits)
    return bad_model("attention_bias of shape {} for scores of shape {}", shape_to_string(shape),
                     shape_to_string(full));
  return {};
}

Result<double> read_scale(NodeContext& node, const Heads& heads) {
  const double given = TRY(node.real("scale", 0.0));
  return given == 0 ? usual_scale(shape_of(heads.queries)[3]) : given;
}

Result<Expr> attend(NodeContext& node, const Heads& heads, Expr mask, Causality causality,
                    double scale, double cap) {
  const bool by_flag = causality.causal && causality.window == 0 && cap == 0 &&
                       heads.num_queries() == heads.num_keys();
  if (causality.causal && !by_flag)
    mask = TRY(sum_of(node, mask,
                      TRY(causal_mask(node, heads, heads.num_keys(), nullptr, causality.window))));
  Expr result;
  if (cap == 0) {
    std::vector<Expr> args = {heads.queries, heads.keys, heads.values};
    if (mask != nullptr) args.push_back(mask);
    result =
        TRY(node.call("nn.attention", std::move(args), {{"scale", scale}, {"causal", by_flag}}));
  } else {
    const Scores scores = TRY(write_out_scores(node, heads.queries, heads.keys, mask, scale, cap));
    Expr weights = TRY(node.call("nn.softmax", {scores.biased}, {{"axis", int64_t{-1}}}));
    result = TRY(node.call("nn.matmul", {weights, heads.values}));
  }
  return merge_heads(node, result);
}

Result<Expr> cache_rows_from(NodeContext& node, const Expr& cache, const Expr& first,
                             int64_t length) {
  Expr start = TRY(node.reshape(TRY(node.cast(first, DType::kInt64)), {1}));
  Expr rows = TRY(node.call("add", {TRY(positions(node, length, 0, {length})), start}));
  Expr taken = TRY(node.call("take", {cache, rows}, {{"axis", int64_t{0}}}));
  return node.reshape(taken, {1, length, shape_of(cache)[1]});
}

Result<Expr> beside_heads(NodeContext& node, const Expr& factors, size_t axis) {
  Shape shape = shape_of(factors);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return node.reshape(factors, std::move(shape));
}

Status refuse_input(const NodeContext& node, size_t input, const char* what) {
  if (node.has(input) && num_elements(node.shape(input)) > 0)
    return unsupported("input {}: {}", input, what);
  return {};
}

}  // namespace collage::frontend
