#include "networks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/visitor.h"
#include "measure/reference_cache.h"
#include "ops/interpreter.h"
#include "verify/synthetic.h"

namespace collage::testing {

namespace {

Expr network_call(const std::string& op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}

bool is_float32(const TensorType& type) { return type.dtype == DType::kFloat32; }

// One element of middling size becomes zero.
Tensor without_one(const Tensor& tensor) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < tensor.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(tensor.data<float>()[a]) < std::abs(tensor.data<float>()[b]);
  });
  Tensor result = tensor.clone();
  result.data<float>()[order[order.size() / 2]] = 0;
  return result;
}

// Ones, but zeros for one index of the second dimension, of a vector the first.
Tensor without_channel(const Shape& shape) {
  Tensor mask = Tensor::empty(DType::kFloat32, shape);
  const size_t axis = shape.size() > 1 ? 1 : 0;
  const int64_t channels = shape.empty() ? 1 : shape[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  for (int64_t i = 0; i < mask.size(); ++i)
    mask.data<float>()[i] = i / inner % channels == channels / 2 ? 0.0f : 1.0f;
  return mask;
}

Tensor to_double(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return tensor;
  Tensor result = Tensor::empty(DType::kFloat64, tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) result.data<double>()[i] = tensor.data<float>()[i];
  return result;
}

}  // namespace

Expr Weights::of(Shape shape) {
  return make_constant(
      synthetic_constant(TensorType{std::move(shape), DType::kFloat32}, ++seed_).value());
}

Expr residual_blocks(Expr image, int blocks, Weights& weights) {
  const int64_t channels = image->tensor_type().shape[1];
  const auto conv = [&](const Expr& x) {
    return network_call("nn.bias_add",
                        {network_call("nn.conv2d", {x, weights.of({channels, channels, 3, 3})},
                                      {{"padding", Ints{1, 1, 1, 1}}}),
                         weights.of({channels})});
  };
  for (int b = 0; b < blocks; ++b)
    image = network_call(
        "nn.relu", {network_call("add", {image, conv(network_call("nn.relu", {conv(image)}))})});
  return image;
}

Function residual_network(int blocks, int64_t channels, int64_t side) {
  Weights weights;
  Expr image = make_var("image", TensorType{{1, channels, side, side}, DType::kFloat32});
  Expr x = network_call("nn.relu",
                        {network_call("nn.conv2d", {image, weights.of({channels, channels, 3, 3})},
                                      {{"padding", Ints{1, 1, 1, 1}}})});
  x = network_call("nn.global_avg_pool2d", {residual_blocks(x, blocks, weights)});
  x = network_call("reshape", {x}, {{"newshape", Ints{1, channels}}});
  return make_function({image}, network_call("nn.dense", {x, weights.of({50, channels})}));
}

Function transformer(int layers, int64_t rows, int64_t width) {
  Weights weights;
  Expr input = make_var("rows", TensorType{{rows, width}, DType::kFloat32}), x = input;
  const auto norm = [&](const Expr& y) {
    return network_call("nn.layer_norm", {y, weights.of({width}), weights.of({width})});
  };
  const auto dense = [&](const Expr& y, int64_t units) {
    return network_call(
        "add", {network_call("nn.dense", {y, weights.of({units, y->tensor_type().shape[1]})}),
                weights.of({units})});
  };
  for (int l = 0; l < layers; ++l) {
    const Expr y = norm(x);
    // No bias: one of the keys is the same for all, and softmax makes nothing of it.
    const Expr keys = network_call("nn.dense", {y, weights.of({width, width})});
    const Expr seen = network_call("nn.attention", {dense(y, width), keys, dense(y, width)},
                                   {{"scale", 1 / std::sqrt(static_cast<double>(width))}});
    x = network_call("add", {x, dense(seen, width)});
    x = network_call("add",
                     {x, dense(network_call("nn.gelu", {dense(norm(x), 2 * width)}), width)});
  }
  return make_function({input}, norm(x));
}

std::vector<Tensor> evaluate_in_double(const Function& function,
                                       const std::vector<Tensor>& inputs) {
  const Function flat = inline_calls(function).value();
  std::unordered_map<const ExprNode*, Expr> wide;
  std::vector<Expr> params;
  for (const Expr& param : flat->params) {
    TensorType type = param->tensor_type();
    if (is_float32(type)) type.dtype = DType::kFloat64;
    params.push_back(make_var("p", type));
    wide[param.get()] = params.back();
  }
  for (const Expr& node : post_order(flat->body))
    if (const auto* constant = as<ConstantNode>(node))
      wide[node.get()] = make_constant(to_double(constant->value));
  const Function both = make_function(params, substitute(flat->body, wide).value());
  std::vector<Tensor> wide_inputs;
  for (const Tensor& input : inputs) wide_inputs.push_back(to_double(input));
  std::vector<Tensor> results = interpret(both, wide_inputs).value();
  for (Tensor& result : results) {
    if (result.dtype() != DType::kFloat64) continue;
    Tensor rounded = Tensor::empty(DType::kFloat32, result.shape());
    for (int64_t i = 0; i < result.size(); ++i)
      rounded.data<float>()[i] = static_cast<float>(result.data<double>()[i]);
    result = rounded;
  }
  return results;
}

std::vector<Fault> faults_of(const Function& function) {
  std::vector<Fault> faults;
  const auto add = [&](std::string name, const Expr& node, Expr replacement) {
    faults.push_back(
        {std::move(name),
         make_function(
             function->params,
             substitute(function->body, {{node.get(), std::move(replacement)}}).value())});
  };
  for (const Expr& node : post_order(function->body)) {
    if (!node->type().is_tensor() || !is_float32(node->tensor_type())) continue;
    const TensorType& type = node->tensor_type();
    if (const auto* constant = as<ConstantNode>(node); constant != nullptr && !type.shape.empty())
      add((type.shape.size() == 1 ? "one entry of " : "one tap of ") + shape_to_string(type.shape),
          node, make_constant(without_one(constant->value)));
    if (as<VarNode>(node) != nullptr)
      add("one channel of " + shape_to_string(type.shape), node,
          network_call("multiply", {node, make_constant(without_channel(type.shape))}));
  }
  return faults;
}

RoundingErrors on_trial_data(const Function& function) {
  return on_synthetic_inputs(function, 7).value();
}

}  // namespace collage::testing
