#include "frontend/onnx/operators/recurrent_activations.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "frontend/onnx/operators/matrix_product.h"

namespace collage::frontend {

namespace {

struct Known {
  const char* name;
  const char* op;                     // null: written out
  std::optional<double> alpha, beta;  // what they are where none is given
};

constexpr Known kKnown[] = {
    {"affine", nullptr, 1.0, 0.0},
    {"elu", "nn.elu", 1.0, {}},
    {"hardsigmoid", "nn.hard_sigmoid", 0.2, 0.5},
    {"leakyrelu", "nn.leaky_relu", 0.01, {}},
    {"relu", "nn.relu", {}, {}},
    {"scaledtanh", nullptr, 1.0, 1.0},
    {"sigmoid", "sigmoid", {}, {}},
    {"softplus", "nn.softplus", {}, {}},
    {"softsign", "nn.softsign", {}, {}},
    {"tanh", "tanh", {}, {}},
    {"thresholdedrelu", "nn.thresholded_relu", 1.0, {}},
};

const Known* find_known(const std::string& name) {
  for (const Known& known : kKnown)
    if (name == known.name) return &known;
  return nullptr;
}

std::string lower_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

Result<std::vector<RecurrentActivation>> read_activations(const NodeContext& node,
                                                          const std::vector<std::string>& fallback,
                                                          int64_t directions) {
  std::vector<std::string> names;
  if (node.has_attr("activations")) {
    names = TRY(node.texts("activations"));
  } else {
    for (int64_t i = 0; i < directions; ++i)
      names.insert(names.end(), fallback.begin(), fallback.end());
  }
  if (names.size() != fallback.size() * static_cast<size_t>(directions))
    return bad_model("{} activations", names.size());
  std::vector<double> alphas, betas;
  if (node.has_attr("activation_alpha")) alphas = TRY(node.reals("activation_alpha"));
  if (node.has_attr("activation_beta")) betas = TRY(node.reals("activation_beta"));
  size_t next_alpha = 0, next_beta = 0;
  std::vector<RecurrentActivation> result;
  for (const std::string& name : names) {
    const Known* known = find_known(lower_case(name));
    if (known == nullptr) return bad_model("activation '{}' is unknown", name);
    RecurrentActivation activation{known->name, known->alpha.value_or(0), known->beta.value_or(0)};
    if (known->alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (known->beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    result.push_back(std::move(activation));
  }
  return result;
}

Result<Expr> apply_activation(NodeContext& node, const RecurrentActivation& activation,
                              const Expr& data) {
  const Known& known = *find_known(activation.name);
  if (activation.name == "affine") {
    Expr product = TRY(scaled(node, data, activation.alpha));
    return node.call("add", {product, TRY(node.scalar_like(product, activation.beta))});
  }
  if (activation.name == "scaledtanh") {
    Expr curve = TRY(node.call("tanh", {TRY(scaled(node, data, activation.beta))}));
    return scaled(node, curve, activation.alpha);
  }
  Attrs attrs;
  if (known.alpha) attrs.set("alpha", activation.alpha);
  if (known.beta) attrs.set("beta", activation.beta);
  return node.call(known.op, {data}, std::move(attrs));
}

}  // namespace collage::frontend
