// Parts of the attention operators of both domains: heads, positions, rotation, scores. Queries,
// keys and values are (batch, heads, length, size).
#pragma once

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

// Reshapes (batch, length, heads·size) to (batch, heads, length, size). `name` is that of `heads`
// in errors.
Result<Expr> split_heads(NodeContext& node, const Expr& data, int64_t heads, const char* name);
Result<Expr> merge_heads(NodeContext& node, const Expr& data);
// Repeats each head of keys or values for as many heads of queries.
Result<Expr> share_heads(NodeContext& node, const Expr& data, int64_t heads);

// Returns first, first + 1 …, `count` of them, int64, in that shape.
Result<Expr> positions(NodeContext& node, int64_t count, int64_t first, Shape shape);

// Returns 0 where `allowed` is true and `blocked` elsewhere, to be added to scores.
Result<Expr> additive_mask(NodeContext& node, const Expr& allowed, DType dtype, double blocked);

// Return a && b and a + b, where either may be null.
Result<Expr> both(NodeContext& node, const Expr& a, const Expr& b);
Result<Expr> sum_of(NodeContext& node, const Expr& a, const Expr& b);

// Scores as scale · q · kᵀ, then as cap · tanh(raw / cap) unless the cap is 0, then with the mask
// added, which may be null.
struct Scores {
  Expr raw, capped, biased;
};
Result<Scores> write_out_scores(NodeContext& node, const Expr& q, const Expr& k, const Expr& mask,
                                double scale, double cap);

// Returns 1 / sqrt(size).
double usual_scale(int64_t size);

// Applies rotary embedding to the first elements of the last axis, twice as many as cosines. With
// x1 and x2 their halves, or their even and odd elements if interleaved, the results are cos·x1 -
// sin·x2 and sin·x1 + cos·x2. Cosines and sines broadcast to x1.
Result<Expr> rotate(NodeContext& node, const Expr& data, const Expr& cosines, const Expr& sines,
                    bool interleaved);

}  // namespace collage::frontend
