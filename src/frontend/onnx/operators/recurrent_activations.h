// The activation functions of RNN, GRU and LSTM, by their ONNX names, with parameters.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/node_context.h"

namespace collage::frontend {

struct RecurrentActivation {
  std::string name;  // in lower case
  double alpha = 0, beta = 0;
};

// Reads the attributes "activations" (`fallback` for each direction without it), "activation_alpha"
// and "activation_beta", whose values go in turn to the functions that have such a parameter. All
// of the first direction, then all of the second.
Result<std::vector<RecurrentActivation>> read_activations(const NodeContext& node,
                                                          const std::vector<std::string>& fallback,
                                                          int64_t directions);

Result<Expr> apply_activation(NodeContext& node, const RecurrentActivation& activation,
                              const Expr& data);

}  // namespace collage::frontend
