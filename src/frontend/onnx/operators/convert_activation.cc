// Activation functions, and the softmax family.
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

Converter plain(const char* op) {
  return single([op](NodeContext& node) { return node.call(op, {node.in(0)}); });
}

// An activation whose attributes have the same names here and there.
Converter with_reals(const char* op, std::vector<std::pair<const char*, double>> attributes) {
  return single([op, attributes](NodeContext& node) -> Result<Expr> {
    Attrs attrs;
    for (const auto& [name, fallback] : attributes) attrs.set(name, TRY(node.real(name, fallback)));
    return node.call(op, {node.in(0)}, std::move(attrs));
  });
}

Result<Expr> at_least(NodeContext& node, const Expr& data, const Expr& bound) {
  return node.call("maximum", {data, bound});
}
Result<Expr> at_most(NodeContext& node, const Expr& data, const Expr& bound) {
  return node.call("minimum", {data, bound});
}

// Bounds: attributes before operator set 11, optional inputs since. Two constant bounds on floats
// become one clip; integers keep their exact bounds as maximum and minimum.
Result<Expr> convert_clip(NodeContext& node) {
  Expr low, high;
  if (node.opset() < 11) {
    if (node.has_attr("min")) low = TRY(node.scalar(node.dtype(0), TRY(node.real("min"))));
    if (node.has_attr("max")) high = TRY(node.scalar(node.dtype(0), TRY(node.real("max"))));
  } else {
    if (node.has(1)) low = node.in(1);
    if (node.has(2)) high = node.in(2);
    for (const Expr& bound : {low, high})
      if (bound != nullptr && num_elements(shape_of(bound)) != 1)
        return bad_model("a bound has shape {}, not one value", shape_to_string(shape_of(bound)));
  }
  const auto* constant_low = as<ConstantNode>(low);
  const auto* constant_high = as<ConstantNode>(high);
  if (constant_low != nullptr && constant_high != nullptr && is_float(node.dtype(0))) {
    const double a_min = constant_low->value.element_as_double(0);
    const double a_max = constant_high->value.element_as_double(0);
    if (a_min <= a_max)
      return node.call("clip", {node.in(0)}, {{"a_min", a_min}, {"a_max", a_max}});
  }
  Expr result = node.in(0);
  if (low != nullptr) result = TRY(at_least(node, result, TRY(node.reshape(low, {}))));
  if (high != nullptr) result = TRY(at_most(node, result, TRY(node.reshape(high, {}))));
  return result;
}

// nn.prelu takes one slope a channel; other slopes are written out as max(x, 0) + slope·min(x, 0).
Result<Expr> convert_prelu(NodeContext& node) {
  const Shape& data = node.shape(0);
  Shape slope = node.shape(1);
  Expr alpha = node.in(1);
  if (node.opset() < 7 && slope.size() == 1 && data.size() > 1 && slope[0] == data[1] &&
      slope[0] > 1) {
    slope.resize(data.size() - 1, 1);
    alpha = TRY(node.reshape(alpha, slope));
  }
  const bool one = num_elements(slope) == 1;
  const size_t channel =
      slope.size() + 1 - data.size();  // where axis 1 of the data is in the slope
  const bool by_channel = data.size() >= 2 && slope.size() + 1 >= data.size() &&
                          slope[channel] == data[1] && num_elements(slope) == data[1];
  if (by_channel && !one) {
    alpha = TRY(node.reshape(alpha, {data[1]}));
    return node.call("nn.prelu", {node.in(0), alpha}, {{"axis", int64_t{1}}});
  }
  Expr zero = TRY(node.scalar_like(node.in(0), 0));
  Expr positive = TRY(at_least(node, node.in(0), zero));
  Expr negative = TRY(at_most(node, node.in(0), zero));
  negative = TRY(node.call("multiply", {negative, alpha}));
  return node.call("add", {positive, negative});
}

Result<Expr> convert_gelu(NodeContext& node) {
  const std::string approximate = TRY(node.text("approximate", "none"));
  if (approximate != "none" && approximate != "tanh")
    return bad_model("approximate is '{}', not none or tanh", approximate);
  return node.call("nn.gelu", {node.in(0)}, {{"approximate", approximate}});
}

Result<Expr> swish(NodeContext& node) {
  const double alpha = TRY(node.real("alpha", 1.0));
  if (alpha == 1.0) return node.call("nn.silu", {node.in(0)});
  Expr scaled = TRY(node.call("multiply", {node.in(0), TRY(node.scalar_like(node.in(0), alpha))}));
  Expr gate = TRY(node.call("sigmoid", {scaled}));
  return node.call("multiply", {node.in(0), gate});
}

Result<Expr> convert_swiglu(NodeContext& node) {
  Expr gate = TRY(swish(node));
  return node.call("multiply", {gate, node.in(1)});
}

// Before operator set 13 softmax works on the data as a matrix: dimensions from `axis` on together.
// `apply` gets the data (perhaps as such a matrix) and the axis.
Result<Expr> over_axis(NodeContext& node,
                       const std::function<Result<Expr>(const Expr&, int64_t)>& apply) {
  const bool as_matrix = node.opset() < 13;
  const int64_t rank = node.rank(0);
  const int64_t given = TRY(node.integer("axis", as_matrix ? 1 : -1));
  if (as_matrix && given == rank) {  // each element on its own
    Expr matrix = TRY(node.reshape(node.in(0), {num_elements(node.shape(0)), 1}));
    return node.reshape(TRY(apply(matrix, 1)), node.shape(0));
  }
  const int64_t axis = TRY(normal_axis(given, rank));
  if (!as_matrix || axis == rank - 1) return apply(node.in(0), axis);
  const Shape shape = node.shape(0);
  const size_t split = static_cast<size_t>(axis);
  Expr matrix = TRY(
      node.reshape(node.in(0), {product(shape, 0, split), product(shape, split, shape.size())}));
  return node.reshape(TRY(apply(matrix, 1)), shape);
}

Converter softmax(const char* op) {
  return single([op](NodeContext& node) {
    return over_axis(node, [&](const Expr& data, int64_t axis) {
      return node.call(op, {data}, {{"axis", axis}});
    });
  });
}

// One where the first largest element along the axis is, zero elsewhere.
Result<Expr> convert_hardmax(NodeContext& node) {
  return over_axis(node, [&](const Expr& data, int64_t axis) -> Result<Expr> {
    Expr largest = TRY(node.call("argmax", {data}, {{"axis", axis}, {"keepdims", false}}));
    Expr on = TRY(node.scalar_like(data, 1)), off = TRY(node.scalar_like(data, 0));
    return node.call("one_hot", {largest, on, off},
                     {{"depth", shape_of(data)[static_cast<size_t>(axis)]}, {"axis", axis}});
  });
}

}  // namespace

ConverterRows activation_converters() {
  return {
      {"Celu", 1, 1, with_reals("nn.celu", {{"alpha", 1.0}})},
      {"Clip", 1, 3, single(convert_clip)},
      {"Elu", 1, 1, with_reals("nn.elu", {{"alpha", 1.0}})},
      {"Gelu", 1, 1, single(convert_gelu)},
      {"HardSigmoid", 1, 1, with_reals("nn.hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}})},
      {"HardSwish", 1, 1, plain("nn.hard_swish")},
      {"Hardmax", 1, 1, single(convert_hardmax)},
      {"LeakyRelu", 1, 1, with_reals("nn.leaky_relu", {{"alpha", 0.01}})},
      {"LogSoftmax", 1, 1, softmax("nn.log_softmax")},
      {"Mish", 1, 1, plain("nn.mish")},
      {"PRelu", 2, 2, single(convert_prelu)},
      {"Relu", 1, 1, plain("nn.relu")},
      {"Selu", 1, 1,
       with_reals("nn.selu",
                  {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}})},
      {"Shrink", 1, 1, with_reals("nn.shrink", {{"lambd", 0.5}, {"bias", 0.0}})},
      {"Sigmoid", 1, 1, plain("sigmoid")},
      {"Softmax", 1, 1, softmax("nn.softmax")},
      {"Softplus", 1, 1, plain("nn.softplus")},
      {"Softsign", 1, 1, plain("nn.softsign")},
      {"SwiGLU", 2, 2, single(convert_swiglu)},
      {"Swish", 1, 1, single(swish)},
      {"ThresholdedRelu", 1, 1, with_reals("nn.thresholded_relu", {{"alpha", 1.0}})},
  };
}

}  // namespace collage::frontend
