// Common parts of the attention operators of com.microsoft: masks of integers, causality, caches of
// cosines and sines, and refusals.
#pragma once

#include "frontend/onnx/operators/attention_parts.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

// (batch, heads, length, size) each; heads of keys and values are as many as those of queries.
struct Heads {
  Expr queries, keys, values;

  int64_t batch() const { return shape_of(queries)[0]; }
  int64_t num_queries() const { return shape_of(queries)[2]; }
  int64_t num_keys() const { return shape_of(keys)[2]; }
};

// Returns an integer mask as an addend of scores, `filter` for hidden keys; null if it hides
// nothing. Its shape defines its meaning: (batch, keys) or (batch, queries, keys), 0 for hidden
// keys; (batch) the number of keys; (2·batch) their ends, then their beginnings.
Result<Expr> integer_mask(NodeContext& node, const Expr& mask, const Heads& heads, double filter);

// Checks a bias with 1 or all of the batches and heads for every query and key.
Status check_attention_bias(const Expr& bias, const Heads& heads);

// Reads the attribute "scale"; 0 or none means the usual one.
Result<double> read_scale(NodeContext& node, const Heads& heads);

// The keys that a query sees, of as many positions: those up to its own, `window` of them (0: all).
struct Causality {
  bool causal = false;
  int64_t window = 0;
};

// Returns an additive mask of the keys, of that many positions, that causality hides, for what the
// operator's own flag cannot say: (queries, keys). With `before`, the positions that stand before
// the queries of each sequence: (batch, 1, queries, keys).
Result<Expr> causal_mask(NodeContext& node, const Heads& heads, int64_t keys, const Expr& before,
                         int64_t window);

// Returns softmax(cap(scale · q · kᵀ) + mask) · v as (batch, length, heads·size). The mask may be
// null; the cap is 0 for none.
Result<Expr> attend(NodeContext& node, const Heads& heads, Expr mask, Causality causality,
                    double scale, double cap = 0);

// Returns `length` rows of a cache (positions, size / 2) from position `first`, one integer, as (1,
// length, size / 2).
Result<Expr> cache_rows_from(NodeContext& node, const Expr& cache, const Expr& first,
                             int64_t length);
// Inserts a dimension of 1 in the place of heads.
Result<Expr> beside_heads(NodeContext& node, const Expr& factors, size_t axis);

// Refuses an input that is given and not empty.
Status refuse_input(const NodeContext& node, size_t input, const char* what);

}  // namespace collage::frontend
