// Optimisers of the domain ai.onnx.preview.training: one step of each, for any number of tensors.
// Inputs are a learning rate, the number of steps taken before, then all tensors, all their
// gradients and all of each kind of state; outputs are new tensors and new states.
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/matrix_product.h"

namespace collage::frontend {

namespace {

// a · x + b · y.
Result<Expr> weighted(NodeContext& node, double a, const Expr& x, double b, const Expr& y) {
  return node.call("add", {TRY(scaled(node, x, a)), TRY(scaled(node, y, b))});
}

// What the optimisers share. `kinds`: tensors, gradients and states.
struct Update {
  Expr rate, count;  // scalars
  size_t tensors = 0;
};

Result<Update> read_step(NodeContext& node, size_t kinds) {
  for (size_t i = 0; i < node.num_inputs(); ++i)
    if (!node.has(i)) return bad_model("input {} is missing", i);
  if (node.num_inputs() < 2 + kinds || (node.num_inputs() - 2) % kinds != 0)
    return bad_model("{} inputs are no {} for each tensor", node.num_inputs(), kinds);
  Update step;
  step.tensors = (node.num_inputs() - 2) / kinds;
  for (size_t i = 0; i < 2; ++i)
    if (num_elements(node.shape(i)) != 1) return bad_model("input {} is no single value", i);
  for (size_t i = 2; i < node.num_inputs(); ++i)
    if (node.shape(i) != node.shape(2 + (i - 2) % step.tensors) || !is_float(node.dtype(i)) ||
        node.dtype(i) != node.dtype(2))
      return bad_model("input {} does not fit its tensor", i);
  step.rate = TRY(node.cast(TRY(node.reshape(node.in(0), {})), node.dtype(2)));
  step.count = TRY(node.reshape(node.in(1), {}));
  return step;
}

// `later` where steps were taken before, else `first`.
Result<Expr> by_count(NodeContext& node, const Update& step, const Expr& later, const Expr& first) {
  Expr zero = TRY(node.scalar_like(step.count, 0));
  return node.call("where", {TRY(node.call("greater", {step.count, zero})), later, first});
}

const Expr& input(const NodeContext& node, const Update& step, size_t kind, size_t tensor) {
  return node.in(2 + kind * step.tensors + tensor);
}

// The gradient with that of a penalty on the tensor's square.
Result<Expr> gradient(NodeContext& node, const Update& step, size_t tensor) {
  const double penalty = TRY(node.real("norm_coefficient", 0.0));
  const Expr& given = input(node, step, 1, tensor);
  if (penalty == 0) return given;
  return weighted(node, penalty, input(node, step, 0, tensor), 1, given);
}

// g / (sqrt(h) + epsilon)
Result<Expr> over_root(NodeContext& node, const Expr& g, const Expr& h) {
  Expr root = TRY(node.call("sqrt", {h}));
  Expr epsilon = TRY(node.scalar_like(h, TRY(node.real("epsilon", 1e-6))));
  return node.call("divide", {g, TRY(node.call("add", {root, epsilon}))});
}

// x - rate · change
Result<Expr> moved(NodeContext& node, const Expr& x, const Expr& rate, const Expr& change) {
  return node.call("subtract", {x, TRY(node.call("multiply", {rate, change}))});
}

// h' = h + g², x' = x - rate / (1 + count · decay) · g / (sqrt(h') + ε).
Result<Outputs> convert_adagrad(NodeContext& node) {
  const Update step = TRY(read_step(node, 3));
  Expr count = TRY(node.cast(step.count, dtype_of(step.rate)));
  Expr slower = TRY(scaled(node, count, TRY(node.real("decay_factor", 0.0))));
  slower = TRY(node.call("add", {slower, TRY(node.scalar_like(slower, 1))}));
  Expr rate = TRY(node.call("divide", {step.rate, slower}));
  Outputs outputs(2 * step.tensors);
  for (size_t i = 0; i < step.tensors; ++i) {
    Expr g = TRY(gradient(node, step, i));
    Expr h = TRY(node.call("add", {input(node, step, 2, i), TRY(node.call("multiply", {g, g}))}));
    outputs[i] = TRY(moved(node, input(node, step, 0, i), rate, TRY(over_root(node, g, h))));
    outputs[step.tensors + i] = h;
  }
  return outputs;
}

// 1 - base^count, for counts above 0.
Result<Expr> one_less_power(NodeContext& node, const Update& step, double base) {
  const DType dtype = dtype_of(step.rate);
  Expr power =
      TRY(node.call("power", {TRY(node.scalar(dtype, base)), TRY(node.cast(step.count, dtype))}));
  return node.call("subtract", {TRY(node.scalar(dtype, 1)), power});
}

// v' = α·v + (1 - α)·g, h' = β·h + (1 - β)·g², x' = x - rate' · v' / (sqrt(h') + ε), where rate'
// makes up for averages that began with zeros.
Result<Outputs> convert_adam(NodeContext& node) {
  const Update step = TRY(read_step(node, 4));
  const double alpha = TRY(node.real("alpha", 0.9)), beta = TRY(node.real("beta", 0.999));
  const double shrink = 1 - TRY(node.real("norm_coefficient_post", 0.0));
  Expr root = TRY(node.call("sqrt", {TRY(one_less_power(node, step, beta))}));
  Expr rate = TRY(node.call("multiply", {step.rate, root}));
  rate = TRY(node.call("divide", {rate, TRY(one_less_power(node, step, alpha))}));
  rate = TRY(by_count(node, step, rate, step.rate));
  Outputs outputs(3 * step.tensors);
  for (size_t i = 0; i < step.tensors; ++i) {
    Expr g = TRY(gradient(node, step, i));
    Expr v = TRY(weighted(node, alpha, input(node, step, 2, i), 1 - alpha, g));
    Expr square = TRY(node.call("multiply", {g, g}));
    Expr h = TRY(weighted(node, beta, input(node, step, 3, i), 1 - beta, square));
    Expr x = TRY(moved(node, input(node, step, 0, i), rate, TRY(over_root(node, v, h))));
    outputs[i] = TRY(scaled(node, x, shrink));
    outputs[step.tensors + i] = v;
    outputs[2 * step.tensors + i] = h;
  }
  return outputs;
}

// v' = α·v + β·g, where β is 1 in the first step; x' = x - rate·v', or with Nesterov's momentum
// x - rate·(g + α·v').
Result<Outputs> convert_momentum(NodeContext& node) {
  const Update step = TRY(read_step(node, 3));
  const double alpha = TRY(node.real("alpha")), beta = TRY(node.real("beta"));
  const std::string mode = TRY(node.text("mode"));
  if (mode != "standard" && mode != "nesterov") return bad_model("mode '{}' is unknown", mode);
  Expr factor = TRY(by_count(node, step, TRY(node.scalar_like(step.rate, beta)),
                             TRY(node.scalar_like(step.rate, 1))));
  Outputs outputs(2 * step.tensors);
  for (size_t i = 0; i < step.tensors; ++i) {
    Expr g = TRY(gradient(node, step, i));
    Expr v = TRY(scaled(node, input(node, step, 2, i), alpha));
    v = TRY(node.call("add", {v, TRY(node.call("multiply", {g, factor}))}));
    Expr change = mode == "standard" ? v : TRY(weighted(node, 1, g, alpha, v));
    outputs[i] = TRY(moved(node, input(node, step, 0, i), step.rate, change));
    outputs[step.tensors + i] = v;
  }
  return outputs;
}

}  // namespace

ConverterRows training_converters() {
  return {
      {"Adagrad", 2, -1, convert_adagrad},
      {"Adam", 2, -1, convert_adam},
      {"Momentum", 2, -1, convert_momentum},
  };
}

}  // namespace collage::frontend
