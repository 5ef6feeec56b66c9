// Products and convolutions of the domain com.microsoft that ONNX Runtime's optimisers joined with
// what follows or precedes them: scaling, transposes, activations, a residual sum. They are taken
// apart again; which of it runs as one kernel is for the search to decide.
#include <algorithm>

#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/matrix_product.h"

namespace collage::frontend {

namespace {

// An activation by its ONNX name. Its parameters in ONNX's order, and ONNX's defaults.
struct Activation {
  std::string_view name;
  const char* op;
  std::vector<std::pair<const char*, double>> parameters = {};
};

const Activation* find_activation(const std::string& name) {
  static const auto* rows = new std::vector<Activation>{
      {"Celu", "nn.celu", {{"alpha", 1.0}}},
      {"Clip", "clip", {{"a_min", -3.4028234663852886e38}, {"a_max", 3.4028234663852886e38}}},
      {"Elu", "nn.elu", {{"alpha", 1.0}}},
      {"HardSigmoid", "nn.hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}}},
      {"LeakyRelu", "nn.leaky_relu", {{"alpha", 0.01}}},
      {"Relu", "nn.relu"},
      {"Selu",
       "nn.selu",
       {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}},
      {"Sigmoid", "sigmoid"},
      {"Softplus", "nn.softplus"},
      {"Softsign", "nn.softsign"},
      {"Tanh", "tanh"},
      {"ThresholdedRelu", "nn.thresholded_relu", {{"alpha", 1.0}}},
  };
  auto it = std::find_if(rows->begin(), rows->end(),
                         [&](const Activation& row) { return row.name == name; });
  return it == rows->end() ? nullptr : &*it;
}

// `value` gives the parameter of that position and name.
Result<Expr> activate(NodeContext& node, const Expr& data,
                      const std::function<Result<double>(size_t, const char*, double)>& value) {
  const std::string name = TRY(node.text("activation", ""));
  if (name.empty()) return data;
  const Activation* activation = find_activation(name);
  if (activation == nullptr) return unsupported("activation '{}'", name);
  Attrs attrs;
  for (size_t i = 0; i < activation->parameters.size(); ++i) {
    const auto& [parameter, fallback] = activation->parameters[i];
    attrs.set(parameter, TRY(value(i, parameter, fallback)));
  }
  return node.call(activation->op, {data}, std::move(attrs));
}

// Everything of Gemm, whose converter reads the same node; then activation_alpha and its kin.
Result<Expr> convert_fused_gemm(NodeContext& node) {
  Outputs product = TRY(find_converter("", "Gemm")->convert(node));
  return activate(node, product[0], [&](size_t, const char* name, double fallback) {
    return node.real(fmt::format("activation_{}", name), fallback);
  });
}

// activation(conv(X, W) + B + Z)
Result<Expr> convert_fused_conv(NodeContext& node) {
  Expr result = TRY(find_converter("", "Conv")->convert(node))[0];
  if (node.has(3)) {
    if (node.shape(3) != shape_of(result))
      return bad_model("Z of shape {} does not fit the result {}", shape_to_string(node.shape(3)),
                       shape_to_string(shape_of(result)));
    result = TRY(node.call("add", {result, node.in(3)}));
  }
  std::vector<double> given;
  if (node.has_attr("activation_params")) given = TRY(node.reals("activation_params"));
  return activate(node, result, [&](size_t i, const char*, double fallback) -> Result<double> {
    return i < given.size() ? given[i] : fallback;
  });
}

// (rows, batches …, columns) to (batches …, rows, columns)
Result<Expr> batches_first(NodeContext& node, size_t input, const char* flag) {
  const Expr& data = node.in(input);
  const int64_t rank = rank_of(data);
  if (!TRY(node.flag(flag, false)) || rank < 3) return data;
  Ints axes;
  for (int64_t axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
  axes.push_back(0);
  axes.push_back(rank - 1);
  return node.transpose(data, axes);
}

Result<Expr> convert_fused_matmul(NodeContext& node) {
  Expr a = TRY(batches_first(node, 0, "transBatchA"));
  Expr b = TRY(batches_first(node, 1, "transBatchB"));
  Expr result = TRY(
      matrix_product(node, a, b, TRY(node.flag("transA", false)), TRY(node.flag("transB", false))));
  return scaled(node, result, TRY(node.real("alpha", 1.0)));
}

}  // namespace

ConverterRows microsoft_fused_converters() {
  return {
      {"FusedConv", 2, 4, single(convert_fused_conv)},
      {"FusedGemm", 2, 3, single(convert_fused_gemm)},
      {"FusedMatMul", 2, 2, single(convert_fused_matmul)},
      {"TransposeMatMul", 2, 2, single(convert_fused_matmul)},
  };
}

}  // namespace collage::frontend
