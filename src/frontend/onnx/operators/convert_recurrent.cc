// RNN, GRU and LSTM: what a node leaves out is made zeros, and the axes of layout 1 are moved.
#include <algorithm>
#include <cctype>

#include "frontend/onnx/operators/converters.h"
#include "ops/recurrent.h"

namespace collage::frontend {

namespace {

// Sets the attributes of activations, unless they are what they are by default. "activation_alpha"
// and "activation_beta" go in turn to the functions that have such a parameter.
Status read_activations(const NodeContext& node, Attrs& attrs) {
  if (!node.has_attr("activations")) return {};
  std::vector<double> alphas, betas, alpha, beta;
  if (node.has_attr("activation_alpha")) alphas = TRY(node.reals("activation_alpha"));
  if (node.has_attr("activation_beta")) betas = TRY(node.reals("activation_beta"));
  size_t next_alpha = 0, next_beta = 0;
  const auto take = [](const std::optional<double>& fallback, const std::vector<double>& given,
                       size_t& next) {
    return fallback && next < given.size() ? given[next++] : fallback.value_or(0);
  };
  std::string text;
  for (const std::string& given : TRY(node.texts("activations"))) {
    std::string name = given;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const RecurrentFunction* function = find_recurrent_function(name);
    if (function == nullptr) return bad_model("activation '{}' is unknown", given);
    alpha.push_back(take(function->alpha, alphas, next_alpha));
    beta.push_back(take(function->beta, betas, next_beta));
    text += (text.empty() ? "" : " ") + name;
  }
  attrs.set("activations", text);
  attrs.set("alpha", alpha);
  attrs.set("beta", beta);
  return {};
}

Status check_lengths(const Expr& lengths, int64_t steps) {
  const auto* constant = as<ConstantNode>(lengths);
  for (int64_t i = 0; constant != nullptr && i < constant->value.size(); ++i)
    if (const int64_t length = constant->value.element_as_int64(i); length < 0 || length > steps)
      return bad_model("a sequence of {} steps, there are {}", length, steps);
  return {};
}

Result<Outputs> convert_recurrent(NodeContext& node, const RecurrentOp& op) {
  for (size_t i = 0; i < 3; ++i)
    if (node.rank(i) != 3) return bad_model("input {} has rank {}, not 3", i, node.rank(i));
  const int64_t hidden = node.shape(2)[2];
  if (TRY(node.integer("hidden_size", hidden)) != hidden)
    return bad_model("hidden_size differs from R's {}", hidden);
  Attrs attrs = {{"direction", TRY(node.text("direction", "forward"))},
                 {"clip", TRY(node.real("clip", 0.0))}};
  TRY(read_activations(node, attrs));
  if (op.gates == 3) attrs.set("linear_before_reset", TRY(node.flag("linear_before_reset", false)));
  if (op.gates == 4) attrs.set("input_forget", TRY(node.flag("input_forget", false)));
  const bool batch_first = TRY(node.flag("layout", false));
  const auto with_batch_second = [&](const Expr& data) -> Result<Expr> {
    if (!batch_first || rank_of(data) != 3) return data;
    return node.transpose(data, {1, 0, 2});
  };
  const Expr data = TRY(with_batch_second(node.in(0)));
  const int64_t steps = shape_of(data)[0], batch = shape_of(data)[1];
  const int64_t directions = recurrent_directions(attrs);
  const auto given_or = [&](size_t input, const Shape& shape, DType dtype,
                            double value) -> Result<Expr> {
    return node.has(input) ? with_batch_second(node.in(input)) : node.full(dtype, shape, value);
  };
  const DType real = node.dtype(0);
  const Expr lengths = TRY(given_or(4, {batch}, DType::kInt32, static_cast<double>(steps)));
  TRY(check_lengths(lengths, steps));
  std::vector<Expr> args = {data, node.in(1), node.in(2),
                            TRY(given_or(3, {directions, 2 * op.gates * hidden}, real, 0)),
                            lengths};
  for (size_t input = 5; input < (op.gates == 4 ? 7U : 6U); ++input)
    args.push_back(TRY(given_or(input, {directions, batch, hidden}, real, 0)));
  if (node.has(7)) args.push_back(node.in(7));
  const Expr all = TRY(node.call(op.name, std::move(args), std::move(attrs)));
  // (T, D, B, H) and (D, B, H), or with layout 1 (B, T, D, H) and (B, D, H).
  Outputs outputs;
  for (int64_t i = 0; i < static_cast<int64_t>(all->type().fields().size()); ++i) {
    Expr result = node.item(all, i);
    if (batch_first && i == 0) result = TRY(node.transpose(result, {2, 0, 1, 3}));
    outputs.push_back(TRY(with_batch_second(result)));
  }
  return outputs;
}

}  // namespace

ConverterRows recurrent_converters() {
  ConverterRows rows;
  for (const RecurrentOp& op : recurrent_ops())
    rows.push_back({op.onnx_name, 3, op.gates == 4 ? 8 : 6,
                    [&op](NodeContext& node) { return convert_recurrent(node, op); }});
  return rows;
}

}  // namespace collage::frontend
