// nn.attention(q [..,Tq,D], k [..,Tk,D], v [..,Tk,Dv][, mask]) = softmax(scale·q·kᵀ + mask)·v. The
// mask broadcasts to [..,Tq,Tk]. With `causal` query i sees keys 0 to i. With `zero_nan` weights
// that are NaN count as 0; a kernel may leave that out, as it may spread NaN
// (docs/special-values.md). One [Tq,Tk] matrix of scores at a time, in double throughout.
#include <cmath>
#include <limits>
#include <vector>

#include "ops/families.h"
#include "ops/product.h"
#include "ops/strided.h"

namespace collage {

namespace {

Result<Type> infer_attention(Types args, const Attrs& attrs) {
  TensorType q = TRY(tensor_arg(args, 0)), k = TRY(tensor_arg(args, 1));
  TensorType v = TRY(tensor_arg(args, 2));
  TRY(require_float(q, "q"));
  TRY(require_same_dtype(q, k));
  TRY(require_same_dtype(q, v));
  TRY(require_min_rank(q, 2, "q"));
  const size_t rank = q.shape.size();
  TRY(require_rank(k, static_cast<int64_t>(rank), "k"));
  TRY(require_rank(v, static_cast<int64_t>(rank), "v"));
  if (!std::isfinite(attrs.real("scale"))) return bad_model("scale is not finite");
  Shape k_shape = q.shape, v_shape = q.shape;
  k_shape[rank - 2] = v_shape[rank - 2] = k.shape[rank - 2];
  v_shape[rank - 1] = v.shape[rank - 1];
  TRY(require_shape(k, k_shape, "k"));
  TRY(require_shape(v, v_shape, "v"));
  if (args.size() == 4) {
    TensorType mask = TRY(tensor_arg(args, 3));
    TRY(require_same_dtype(q, mask));
    Shape scores = q.shape;
    scores[rank - 1] = k.shape[rank - 2];
    TRY(tensor_result(scores, q.dtype));
    if (TRY(broadcast_shapes(mask.shape, scores)) != scores)
      return bad_model("mask {} does not broadcast to {}", shape_to_string(mask.shape),
                       shape_to_string(scores));
  }
  Shape shape = q.shape;
  shape[rank - 1] = v.shape[rank - 1];
  return tensor_result(std::move(shape), q.dtype);
}

void softmax_row(double* row, int64_t count, int64_t visible) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = 0; j < visible; ++j) largest = std::max(largest, row[j]);
  for (int64_t j = 0; j < visible; ++j) {
    row[j] = std::exp(row[j] - largest);
    sum += row[j];
  }
  for (int64_t j = 0; j < count; ++j) row[j] = j < visible ? row[j] / sum : 0.0;
}

Status run_attention(std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
  const Tensor &q = inputs[0], &k = inputs[1], &v = inputs[2];
  if (outputs[0].size() == 0) return {};
  const size_t rank = q.shape().size();
  const int64_t tq = q.shape()[rank - 2], tk = k.shape()[rank - 2], d = q.shape()[rank - 1];
  const int64_t dv = v.shape()[rank - 1];
  const int64_t heads = extent_product(q.shape(), 0, static_cast<int64_t>(rank) - 2);
  const double scale = attrs.real("scale");
  const bool causal = attrs.flag("causal"), zero_nan = attrs.flag("zero_nan");
  Shape lead(q.shape().begin(), q.shape().end() - 2), full = lead;
  full.insert(full.end(), {tq, tk});
  Ints mask_strides;
  if (inputs.size() == 4) mask_strides = broadcast_strides(inputs[3].shape(), full);
  Tensor scores = TRY(Tensor::allocate(DType::kFloat64, {tq, tk}));
  double* s = scores.data<double>();
  dispatch_float(q.dtype(), [&]<typename T>(Tag<T>) {
    for (int64_t head = 0; head < heads; ++head) {
      auto at = [](int64_t offset) { return [offset](int64_t) { return offset; }; };
      blocked_product({1, tq, tk, d}, strided_panel(q.data<T>(), at(head * tq * d), d, 1),
                      strided_panel(k.data<T>(), at(head * tk * d), 1, d), dense_store(s, tq, tk));
      int64_t mask_at = 0, rest = head;
      if (!mask_strides.empty())
        for (size_t i = lead.size(); i-- > 0; rest /= lead[i])
          mask_at += rest % lead[i] * mask_strides[i];
#pragma omp parallel for schedule(static) if (tq * tk > 4096)
      for (int64_t i = 0; i < tq; ++i) {
        double* row = s + i * tk;
        for (int64_t j = 0; j < tk; ++j) row[j] *= scale;
        if (!mask_strides.empty()) {
          const T* mask = inputs[3].data<T>() + mask_at + i * mask_strides[rank - 2];
          for (int64_t j = 0; j < tk; ++j)
            row[j] += static_cast<double>(mask[j * mask_strides[rank - 1]]);
        }
        softmax_row(row, tk, causal ? std::min(tk, i + 1) : tk);
        if (zero_nan)
          for (int64_t j = 0; j < tk; ++j) row[j] = std::isnan(row[j]) ? 0.0 : row[j];
      }
      blocked_product({1, tq, dv, tk}, strided_panel(s, at(0), tk, 1),
                      strided_panel(v.data<T>(), at(head * tk * dv), dv, 1),
                      dense_store(outputs[0].data<T>() + head * tq * dv, tq, dv));
    }
  });
  return {};
}

}  // namespace

void register_attention_ops() {
  OpDef op;
  op.name = "nn.attention";
  op.min_args = 3;
  op.max_args = 4;
  op.attrs = {{"scale", 1.0, true}, {"causal", false}, {"zero_nan", false}};
  op.kind = FusionKind::kAnchor;
  op.infer_type = infer_attention;
  op.reference = with_halves(run_attention);
  // Two products; a causal mask makes half of each useless, but counts as work all the same.
  op.flops = [](Types args, const Attrs&, const Type& result) {
    const Shape &q = args[0].tensor().shape, &k = args[1].tensor().shape;
    const auto tk = static_cast<double>(k[k.size() - 2]);
    return 2.0 * tk * static_cast<double>(num_elements(q)) +
           2.0 * tk * static_cast<double>(num_elements(result.tensor().shape));
  };
  register_op(std::move(op));
}

}  // namespace collage
