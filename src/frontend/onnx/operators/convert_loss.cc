// Loss functions and signal windows: rare in deployed models, but plain arithmetic.
#include <cmath>
#include <numbers>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// -log_probabilities[n, target[n, …], …] · weight[target], reduced. An ignored target counts
// nothing.
Result<Expr> negative_log_likelihood(NodeContext& node, const Expr& log_probabilities) {
  const Shape data = shape_of(log_probabilities), target = node.shape(1);
  if (data.size() < 2 || target.size() + 1 != data.size())
    return bad_model("data {} and target {} do not fit", shape_to_string(data),
                     shape_to_string(target));
  const std::string reduction = TRY(node.text("reduction", "mean"));
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return bad_model("reduction '{}' is unknown", reduction);
  Expr index = node.in(1), counted;
  if (node.has_attr("ignore_index")) {
    const double ignored = static_cast<double>(TRY(node.integer("ignore_index")));
    Expr same = TRY(node.call("equal", {index, TRY(node.scalar_like(index, ignored))}));
    counted = TRY(node.cast(TRY(node.call("logical_not", {same})), dtype_of(log_probabilities)));
    index = TRY(node.call("where", {same, TRY(node.scalar_like(index, 0)), index}));
  }
  Expr factor;
  if (node.has(2)) {
    if (node.rank(2) != 1) return bad_model("weight has rank {}, not 1", node.rank(2));
    factor = TRY(node.call("take", {node.in(2), index}, {{"axis", int64_t{0}}}));
    if (counted != nullptr) factor = TRY(node.call("multiply", {factor, counted}));
  } else {
    factor = counted;
  }
  Shape with_class = target;
  with_class.insert(with_class.begin() + 1, 1);
  Expr chosen = TRY(node.call("gather", {log_probabilities, TRY(node.reshape(index, with_class))},
                              {{"axis", int64_t{1}}}));
  Expr loss = TRY(node.call("negative", {TRY(node.reshape(chosen, target))}));
  if (factor != nullptr) loss = TRY(node.call("multiply", {loss, factor}));
  if (reduction == "none") return loss;
  Ints axes;
  for (size_t i = 0; i < target.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Attrs over = {{"axis", axes}, {"keepdims", false}};
  Expr sum = TRY(node.call("sum", {loss}, over));
  if (reduction == "sum") return sum;
  Expr count = factor == nullptr
                   ? TRY(node.scalar_like(sum, static_cast<double>(num_elements(target))))
                   : TRY(node.call("sum", {factor}, over));
  return node.call("divide", {sum, count});
}

Result<Expr> convert_nll(NodeContext& node) { return negative_log_likelihood(node, node.in(0)); }

Result<Outputs> convert_softmax_cross_entropy(NodeContext& node) {
  Expr logs = TRY(node.call("nn.log_softmax", {node.in(0)}, {{"axis", int64_t{1}}}));
  return Outputs{TRY(negative_log_likelihood(node, logs)), logs};
}

// a0 - a1·cos(2πn/N) + a2·cos(4πn/N), with N one less than the size for symmetric windows.
Converter window(double a0, double a1, double a2) {
  return single([=](NodeContext& node) -> Result<Expr> {
    const Ints given = TRY(node.constant_ints(0, "size"));
    if (given.size() != 1 || given[0] < 0 || given[0] > kMaxFoldedElements)
      return bad_model("size is no number from 0 to {}", kMaxFoldedElements);
    const bool periodic = TRY(node.flag("periodic", true));
    const double period = static_cast<double>(periodic ? given[0] : given[0] - 1);
    std::vector<double> values(static_cast<size_t>(given[0]));
    for (size_t n = 0; n < values.size(); ++n) {
      const double x = 2 * std::numbers::pi * static_cast<double>(n) / std::max(period, 1.0);
      values[n] = a0 - a1 * std::cos(x) + a2 * std::cos(2 * x);
    }
    const DType dtype = node.has_attr("output_datatype") ? TRY(node.element_type("output_datatype"))
                                                         : DType::kFloat32;
    return node.cast(node.constant_of(Tensor::from<double>({given[0]}, values)), dtype);
  });
}

}  // namespace

ConverterRows loss_converters() {
  return {
      {"BlackmanWindow", 1, 1, window(0.42, 0.5, 0.08)},
      {"HammingWindow", 1, 1, window(25.0 / 46, 21.0 / 46, 0)},
      {"HannWindow", 1, 1, window(0.5, 0.5, 0)},
      {"NegativeLogLikelihoodLoss", 2, 3, single(convert_nll)},
      {"SoftmaxCrossEntropyLoss", 2, 3, convert_softmax_cross_entropy},
  };
}

}  // namespace collage::frontend
