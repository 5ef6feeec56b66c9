#include "frontend/onnx/operators/attention_parts.h"

#include <algorithm>
#include <cmath>

#include "frontend/onnx/limits.h"

namespace collage::frontend {

namespace {

Result<Expr> slice_last(NodeContext& node, const Expr& data, int64_t begin, int64_t end,
                        int64_t step) {
  const int64_t last = rank_of(data) - 1;
  return node.call(
      "strided_slice", {data},
      {{"begin", Ints{begin}}, {"end", Ints{end}}, {"strides", Ints{step}}, {"axes", Ints{last}}});
}

}  // namespace

Result<Expr> split_heads(NodeContext& node, const Expr& data, int64_t heads, const char* name) {
  if (rank_of(data) != 3)
    return bad_model("an operand has shape {}; rank 3 or 4 is needed",
                     shape_to_string(shape_of(data)));
  const Shape& shape = shape_of(data);
  if (heads < 1 || shape[2] % heads != 0)
    return bad_model("{} {} does not divide {}", name, heads, shape[2]);
  Expr split = TRY(node.reshape(data, {shape[0], shape[1], heads, shape[2] / heads}));
  return node.transpose(split, {0, 2, 1, 3});
}

Result<Expr> merge_heads(NodeContext& node, const Expr& data) {
  const Shape shape = shape_of(data);
  Expr turned = TRY(node.transpose(data, {0, 2, 1, 3}));
  return node.reshape(turned, {shape[0], shape[2], shape[1] * shape[3]});
}

Result<Expr> share_heads(NodeContext& node, const Expr& data, int64_t heads) {
  const int64_t own = shape_of(data)[1];
  if (own == heads) return data;
  if (own < 1 || heads % own != 0)
    return bad_model("{} query heads for {} key and value heads", heads, own);
  return node.call("repeat", {data}, {{"repeats", heads / own}, {"axis", int64_t{1}}});
}

Result<Expr> positions(NodeContext& node, int64_t count, int64_t first, Shape shape) {
  return node.reshape(TRY(node.arange(count, first)), std::move(shape));
}

Result<Expr> additive_mask(NodeContext& node, const Expr& allowed, DType dtype, double blocked) {
  Expr zero = TRY(node.scalar(dtype, 0)), hidden = TRY(node.scalar(dtype, blocked));
  return node.call("where", {allowed, zero, hidden});
}

Result<Expr> both(NodeContext& node, const Expr& a, const Expr& b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return node.call("logical_and", {a, b});
}

Result<Expr> sum_of(NodeContext& node, const Expr& a, const Expr& b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return node.call("add", {a, b});
}

Result<Scores> write_out_scores(NodeContext& node, const Expr& q, const Expr& k, const Expr& mask,
                                double scale, double cap) {
  Scores scores;
  const Expr product = TRY(node.call("nn.matmul", {q, k}, {{"transpose_b", true}}));
  scores.raw = TRY(node.call("multiply", {product, TRY(node.scalar_like(product, scale))}));
  scores.capped = scores.raw;
  if (cap != 0) {
    const Expr limit = TRY(node.scalar_like(product, cap));
    const Expr bent = TRY(node.call("tanh", {TRY(node.call("divide", {scores.raw, limit}))}));
    scores.capped = TRY(node.call("multiply", {bent, limit}));
  }
  scores.biased = TRY(sum_of(node, scores.capped, mask));
  return scores;
}

double usual_scale(int64_t size) {
  return 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(size, 1)));
}

Result<Expr> rotate(NodeContext& node, const Expr& data, const Expr& cosines, const Expr& sines,
                    bool interleaved) {
  const int64_t last = rank_of(data) - 1, size = shape_of(data).back();
  const int64_t rotated = 2 * shape_of(cosines).back();
  Expr x = rotated == size ? data : TRY(slice_last(node, data, 0, rotated, 1));
  Expr x1 = TRY(slice_last(node, x, 0, interleaved ? rotated : rotated / 2, interleaved ? 2 : 1));
  Expr x2 = TRY(slice_last(node, x, interleaved ? 1 : rotated / 2, rotated, interleaved ? 2 : 1));
  auto times = [&](const Expr& factors, const Expr& half) {
    return node.call("multiply", {half, factors});
  };
  Expr real = TRY(node.call("subtract", {TRY(times(cosines, x1)), TRY(times(sines, x2))}));
  Expr imaginary = TRY(node.call("add", {TRY(times(sines, x1)), TRY(times(cosines, x2))}));
  Expr result;
  if (interleaved) {
    Expr pairs = TRY(node.call("stack", {make_tuple({real, imaginary})}, {{"axis", int64_t{-1}}}));
    result = TRY(node.reshape(pairs, shape_of(x)));
  } else {
    result = TRY(node.call("concatenate", {make_tuple({real, imaginary})}, {{"axis", last}}));
  }
  if (rotated == size) return result;
  Expr rest = TRY(slice_last(node, data, rotated, size, 1));
  return node.call("concatenate", {make_tuple({result, rest})}, {{"axis", last}});
}

}  // namespace collage::frontend
