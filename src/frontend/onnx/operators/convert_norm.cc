// Normalisations. Those the IR has map to it; the rest is written out.
#include "frontend/onnx/operators/converters.h"
#include "ops/type_rules.h"

namespace collage::frontend {

namespace {

Ints axes_from(int64_t first, int64_t rank) {
  Ints axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Result<Expr> mean_over(NodeContext& node, const Expr& data, const Ints& axes) {
  return node.call("mean", {data}, {{"axis", axes}, {"keepdims", true}});
}

// old · momentum + now · (1 - momentum), in old's type.
Result<Expr> running(NodeContext& node, const Expr& old, const Expr& now, double momentum) {
  Expr before = TRY(node.cast(old, dtype_of(now)));
  before = TRY(node.call("multiply", {before, TRY(node.scalar_like(now, momentum))}));
  Expr after = TRY(node.call("multiply", {now, TRY(node.scalar_like(now, 1 - momentum))}));
  return node.cast(TRY(node.call("add", {before, after})), dtype_of(old));
}

// In training the data's own statistics count; the running ones go on from those given.
Result<Outputs> train_batch_norm(NodeContext& node, double epsilon) {
  const double momentum = TRY(node.real("momentum", 0.9));
  const int64_t channels = node.shape(0)[1];
  for (size_t i = 1; i < 5; ++i)
    if (node.shape(i) != Shape{channels})
      return bad_model("input {} has shape {}, not {}", i, shape_to_string(node.shape(i)),
                       shape_to_string({channels}));
  if (num_elements(node.shape(0)) == 0) return unsupported("statistics of no data");
  const bool wide = node.dtype(0) == DType::kFloat64;
  const DType dtype = wide ? DType::kFloat64 : DType::kFloat32;
  Expr data = TRY(node.cast(node.in(0), dtype));
  Ints axes = axes_from(2, node.rank(0));
  axes.insert(axes.begin(), 0);
  Expr mean = TRY(mean_over(node, data, axes));
  Expr centred = TRY(node.call("subtract", {data, mean}));
  Expr variance = TRY(mean_over(node, TRY(node.call("multiply", {centred, centred})), axes));
  Expr noisy = TRY(node.call("add", {variance, TRY(node.scalar_like(variance, epsilon))}));
  Expr result = TRY(node.call("multiply", {centred, TRY(node.call("rsqrt", {noisy}))}));
  Expr factors[2];
  for (size_t i = 0; i < 2; ++i)
    factors[i] = TRY(node.reshape(TRY(node.cast(node.in(1 + i), dtype)), shape_of(mean)));
  result = TRY(node.call("multiply", {result, factors[0]}));
  result = TRY(node.call("add", {result, factors[1]}));
  Outputs outputs = {TRY(node.cast(result, node.dtype(0)))};
  mean = TRY(node.reshape(mean, {channels}));
  variance = TRY(node.reshape(variance, {channels}));
  outputs.push_back(TRY(running(node, node.in(3), mean, momentum)));
  outputs.push_back(TRY(running(node, node.in(4), variance, momentum)));
  return outputs;
}

// Before operator set 14 training, which its outputs told, is not supported.
Result<Outputs> convert_batch_norm(NodeContext& node) {
  if (node.opset() < 7 && !TRY(node.flag("is_test", false)) && node.num_outputs() > 1)
    return unsupported("training (is_test = 0)");
  if (node.opset() < 9 && !TRY(node.flag("spatial", true))) return unsupported("spatial = 0");
  if (node.rank(0) < 2) return bad_model("data of rank {}, at least 2 is needed", node.rank(0));
  const double epsilon = TRY(node.real("epsilon", 1e-5));
  if (TRY(node.flag("training_mode", false))) return train_batch_norm(node, epsilon);
  Expr result =
      TRY(node.call("nn.batch_norm", {node.in(0), node.in(1), node.in(2), node.in(3), node.in(4)},
                    {{"axis", int64_t{1}}, {"epsilon", epsilon}}));
  return Outputs{node.item(result, 0)};
}

Result<Expr> like_tail(NodeContext& node, const Expr& data, int64_t axis, const Expr& parameter) {
  const Shape& shape = shape_of(data);
  const Shape tail(shape.begin() + axis, shape.end());
  if (TRY(broadcast_shapes(shape_of(parameter), tail)) != tail)
    return bad_model("scale or bias of shape {} does not broadcast to {}",
                     shape_to_string(shape_of(parameter)), shape_to_string(tail));
  return node.broadcast_to(parameter, tail);
}

// stash_type asks for single precision inside; half precision data is converted for it.
Result<Expr> stashed(NodeContext& node, const Expr& data) {
  const int64_t type = TRY(node.integer("stash_type", 1));
  const DType dtype = dtype_of(data);
  if (type != 1 || dtype == DType::kFloat32 || dtype == DType::kFloat64) return data;
  return node.cast(data, DType::kFloat32);
}

Result<Outputs> convert_layer_norm(NodeContext& node) {
  const int64_t rank = node.rank(0);
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", -1)), rank));
  const double epsilon = TRY(node.real("epsilon", 1e-5));
  const DType dtype = node.dtype(0);
  Expr data = TRY(stashed(node, node.in(0)));
  Expr gamma = TRY(like_tail(node, data, axis, TRY(node.cast(node.in(1), dtype_of(data)))));
  Expr beta = node.has(2)
                  ? TRY(like_tail(node, data, axis, TRY(node.cast(node.in(2), dtype_of(data)))))
                  : TRY(node.full(dtype_of(data), shape_of(gamma), 0));
  Expr result =
      TRY(node.call("nn.layer_norm", {data, gamma, beta}, {{"axis", axis}, {"epsilon", epsilon}}));
  Outputs outputs = {TRY(node.cast(result, dtype))};
  if (!node.wants(1) && !node.wants(2)) return outputs;
  const Ints axes = axes_from(axis, rank);
  Expr mean = TRY(mean_over(node, data, axes));
  Expr centred = TRY(node.call("subtract", {data, mean}));
  Expr variance = TRY(mean_over(node, TRY(node.call("multiply", {centred, centred})), axes));
  variance = TRY(node.call("add", {variance, TRY(node.scalar_like(variance, epsilon))}));
  outputs.push_back(mean);
  outputs.push_back(TRY(node.call("rsqrt", {variance})));
  return outputs;
}

Result<Expr> convert_rms_norm(NodeContext& node) {
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", -1)), node.rank(0)));
  const double epsilon = TRY(node.real("epsilon", 1e-5));
  Expr data = TRY(stashed(node, node.in(0)));
  Expr gamma = TRY(like_tail(node, data, axis, TRY(node.cast(node.in(1), dtype_of(data)))));
  Expr result =
      TRY(node.call("nn.rms_norm", {data, gamma}, {{"axis", axis}, {"epsilon", epsilon}}));
  return node.cast(result, node.dtype(1));
}

Result<Expr> convert_instance_norm(NodeContext& node) {
  if (node.rank(0) < 3) return bad_model("data of rank {}, at least 3 is needed", node.rank(0));
  return node.call("nn.instance_norm", {node.in(0), node.in(1), node.in(2)},
                   {{"axis", int64_t{1}}, {"epsilon", TRY(node.real("epsilon", 1e-5))}});
}

// Operator set 18 has one scale and bias a group; 21 has one a channel, as nn.group_norm.
Result<Expr> convert_group_norm(NodeContext& node) {
  if (node.rank(0) < 3) return bad_model("data of rank {}, at least 3 is needed", node.rank(0));
  const int64_t channels = node.shape(0)[1];
  const int64_t groups = TRY(node.integer("num_groups"));
  if (groups < 1 || channels % groups != 0)
    return bad_model("num_groups {} does not divide {} channels", groups, channels);
  Expr gamma = node.in(1), beta = node.in(2);
  for (Expr* parameter : {&gamma, &beta}) {
    if (node.opset() >= 21 || shape_of(*parameter) != Shape{groups}) continue;
    *parameter = TRY(
        node.call("repeat", {*parameter}, {{"repeats", channels / groups}, {"axis", int64_t{0}}}));
  }
  return node.call(
      "nn.group_norm", {node.in(0), gamma, beta},
      {{"num_groups", groups}, {"axis", int64_t{1}}, {"epsilon", TRY(node.real("epsilon", 1e-5))}});
}

Result<Expr> convert_lrn(NodeContext& node) {
  if (node.rank(0) < 2) return bad_model("data of rank {}, at least 2 is needed", node.rank(0));
  const int64_t size = TRY(node.integer("size"));
  if (size < 1 || size > INT32_MAX) return bad_model("size is {}", size);
  return node.call("nn.lrn", {node.in(0)},
                   {{"size", size},
                    {"axis", int64_t{1}},
                    {"bias", TRY(node.real("bias", 1.0))},
                    {"alpha", TRY(node.real("alpha", 1e-4))},
                    {"beta", TRY(node.real("beta", 0.75))}});
}

// data / norm, and 0 where the norm is 0.
Result<Expr> convert_lp_normalization(NodeContext& node) {
  const int64_t p = TRY(node.integer("p", 2));
  if (p != 1 && p != 2) return bad_model("p is {}, not 1 or 2", p);
  const int64_t axis = TRY(normal_axis(TRY(node.integer("axis", -1)), node.rank(0)));
  const Attrs over = {{"axis", Ints{axis}}, {"keepdims", true}};
  Expr norm;
  if (p == 1) {
    norm = TRY(node.call("sum", {TRY(node.call("abs", {node.in(0)}))}, over));
  } else {
    Expr squares = TRY(node.call("multiply", {node.in(0), node.in(0)}));
    norm = TRY(node.call("sqrt", {TRY(node.call("sum", {squares}, over))}));
  }
  Expr zero = TRY(node.scalar_like(norm, 0)), one = TRY(node.scalar_like(norm, 1));
  Expr is_zero = TRY(node.call("equal", {norm, zero}));
  Expr divisor = TRY(node.call("where", {is_zero, one, norm}));
  return node.call("divide", {node.in(0), divisor});
}

// (x - E[x]) / (sqrt(E[(x - E[x])²]) + 1e-9).
Result<Expr> convert_mean_variance(NodeContext& node) {
  const Ints axes = TRY(normal_axes(TRY(node.ints("axes", Ints{0, 2, 3})), node.rank(0)));
  Expr mean = TRY(mean_over(node, node.in(0), axes));
  Expr centred = TRY(node.call("subtract", {node.in(0), mean}));
  Expr variance = TRY(mean_over(node, TRY(node.call("multiply", {centred, centred})), axes));
  Expr deviation = TRY(node.call("sqrt", {variance}));
  deviation = TRY(node.call("add", {deviation, TRY(node.scalar_like(deviation, 1e-9))}));
  return node.call("divide", {centred, deviation});
}

}  // namespace

ConverterRows norm_converters() {
  return {
      {"BatchNormalization", 5, 5, convert_batch_norm},
      {"GroupNormalization", 3, 3, single(convert_group_norm)},
      {"InstanceNormalization", 3, 3, single(convert_instance_norm)},
      {"LRN", 1, 1, single(convert_lrn)},
      {"LayerNormalization", 2, 3, convert_layer_norm},
      {"LpNormalization", 1, 1, single(convert_lp_normalization)},
      {"MeanVarianceNormalization", 1, 1, single(convert_mean_variance)},
      {"RMSNormalization", 2, 2, single(convert_rms_norm)},
      // The name that ONNX Runtime's optimisers give it, in the standard domain too.
      {"SimplifiedLayerNormalization", 2, 2, single(convert_rms_norm)},
  };
}

}  // namespace collage::frontend
