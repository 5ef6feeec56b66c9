// RNN, GRU and LSTM, unrolled: the longest length is known, so each step becomes calls of its own.
// The product of all inputs with W is one dense call; a step multiplies the state with R, adds and
// activates. Where sequences end earlier, a step behind the end keeps the state and gives zeros.
#include <algorithm>

#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/operators/recurrent_activations.h"

namespace collage::frontend {

namespace {

constexpr int64_t kMaxSteps = 4096;  // over all directions: each is a dozen calls

// What the three operators share, read once: shapes of W (D, G·H, I), R (D, G·H, H), B (D, 2·G·H).
struct Recurrent {
  int64_t gates = 1;
  int64_t steps = 0, batch = 0, hidden = 0, directions = 1;
  bool batch_first = false;
  std::string direction;
  std::vector<RecurrentActivation> activations;
  double clip = 0;
  Expr data;             // (T, B, I)
  Expr lengths;          // (B, 1), or null where all are T
  int64_t shortest = 0;  // of the lengths, as far as it is known
};

struct State {
  Expr h, c;
};

// The pieces of one direction.
struct Direction {
  std::vector<Expr> inputs;  // of each step: (B, G·H), the input's product with W plus all of B
  Expr recurrence;           // (G·H, H)
  Expr recurrence_bias;      // (G·H), for GRU's linear_before_reset; null without B
  Expr peepholes;            // (3·H) or null
  size_t first_activation = 0;
};

Result<Expr> slice(NodeContext& node, const Expr& data, int64_t axis, int64_t begin, int64_t end) {
  return node.call(
      "strided_slice", {data},
      {{"begin", Ints{begin}}, {"end", Ints{end}}, {"strides", Ints{1}}, {"axes", Ints{axis}}});
}

// Entry `index` of the first axis, without that axis.
Result<Expr> entry(NodeContext& node, const Expr& data, int64_t index) {
  Expr part = TRY(slice(node, data, 0, index, index + 1));
  return node.reshape(part, Shape(shape_of(data).begin() + 1, shape_of(data).end()));
}

Result<Expr> gate(NodeContext& node, const Recurrent& r, const Expr& gates, int64_t index) {
  return slice(node, gates, rank_of(gates) - 1, index * r.hidden, (index + 1) * r.hidden);
}

Result<Expr> activate(NodeContext& node, const Recurrent& r, const Direction& d, size_t which,
                      Expr data) {
  if (r.clip > 0) data = TRY(node.call("clip", {data}, {{"a_min", -r.clip}, {"a_max", r.clip}}));
  return apply_activation(node, r.activations[d.first_activation + which], data);
}

Status check_shape(const NodeContext& node, size_t i, const char* name, const Shape& expected) {
  if (!node.has(i) || node.shape(i) == expected) return {};
  return bad_model("{} has shape {}, not {}", name, shape_to_string(node.shape(i)),
                   shape_to_string(expected));
}

// Lengths may be computed at run time. Constant ones tell from which step on they matter.
Status read_lengths(NodeContext& node, Recurrent& r) {
  TRY(check_shape(node, 4, "sequence_lens", {r.batch}));
  if (!node.has(4)) return {};
  if (!is_integer(node.dtype(4)))
    return bad_model("sequence_lens is of type {}", dtype_name(node.dtype(4)));
  if (const auto* constant = as<ConstantNode>(node.in(4))) {
    r.shortest = r.steps;
    for (int64_t i = 0; i < r.batch; ++i) {
      const int64_t length = constant->value.element_as_int64(i);
      if (length < 0 || length > r.steps)
        return bad_model("a sequence of {} steps, there are {}", length, r.steps);
      r.shortest = std::min(r.shortest, length);
    }
    if (r.shortest == r.steps) return {};
  }
  // No step is too large for int32.
  r.lengths = TRY(node.cast(TRY(node.reshape(node.in(4), {r.batch, 1})), DType::kInt32));
  return {};
}

Result<Recurrent> read_recurrent(NodeContext& node, int64_t gates,
                                 const std::vector<std::string>& activations) {
  Recurrent r;
  r.gates = gates;
  r.batch_first = TRY(node.flag("layout", false));
  for (size_t i = 0; i < 3; ++i)
    if (node.rank(i) != 3) return bad_model("input {} has rank {}, not 3", i, node.rank(i));
  r.data = r.batch_first ? TRY(node.transpose(node.in(0), {1, 0, 2})) : node.in(0);
  r.steps = shape_of(r.data)[0];
  r.batch = shape_of(r.data)[1];
  r.hidden = node.shape(2)[2];
  r.direction = TRY(node.text("direction", "forward"));
  if (r.direction != "forward" && r.direction != "reverse" && r.direction != "bidirectional")
    return bad_model("direction '{}' is unknown", r.direction);
  r.directions = r.direction == "bidirectional" ? 2 : 1;
  if (TRY(node.integer("hidden_size", r.hidden)) != r.hidden)
    return bad_model("hidden_size differs from R's {}", r.hidden);
  const int64_t rows = gates * r.hidden;
  TRY(check_shape(node, 1, "W", {r.directions, rows, shape_of(r.data)[2]}));
  TRY(check_shape(node, 2, "R", {r.directions, rows, r.hidden}));
  TRY(check_shape(node, 3, "B", {r.directions, 2 * rows}));
  if (r.steps < 1) return unsupported("a sequence of {} steps", r.steps);
  if (r.steps * r.directions > kMaxSteps)
    return unsupported("{} steps, at most {} are unrolled", r.steps * r.directions, kMaxSteps);
  r.clip = TRY(node.real("clip", 0.0));
  r.activations = TRY(read_activations(node, activations, r.directions));
  TRY(read_lengths(node, r));
  return r;
}

// `fold_recurrence_bias`: the half of B that belongs to R joins the inputs at once.
Result<Direction> read_direction(NodeContext& node, const Recurrent& r, int64_t index,
                                 bool fold_recurrence_bias) {
  Direction d;
  d.first_activation =
      r.activations.size() / static_cast<size_t>(r.directions) * static_cast<size_t>(index);
  Expr weight = TRY(entry(node, node.in(1), index));
  d.recurrence = TRY(entry(node, node.in(2), index));
  const int64_t rows = r.gates * r.hidden;
  Expr flat = TRY(node.reshape(r.data, {r.steps * r.batch, shape_of(r.data)[2]}));
  Expr products = TRY(node.call("nn.dense", {flat, weight}));
  if (node.has(3)) {
    Expr bias = TRY(entry(node, node.in(3), index));
    Expr input_bias = TRY(slice(node, bias, 0, 0, rows));
    d.recurrence_bias = TRY(slice(node, bias, 0, rows, 2 * rows));
    if (fold_recurrence_bias) input_bias = TRY(node.call("add", {input_bias, d.recurrence_bias}));
    products = TRY(node.call("nn.bias_add", {products, input_bias}, {{"axis", int64_t{-1}}}));
  }
  products = TRY(node.reshape(products, {r.steps, r.batch, rows}));
  for (int64_t step = 0; step < r.steps; ++step)
    d.inputs.push_back(TRY(entry(node, products, step)));
  return d;
}

// The initial state of a direction, from an input of shape (D, B, H), or (B, D, H) with layout 1.
Result<Expr> initial_state(NodeContext& node, const Recurrent& r, size_t input, int64_t index) {
  if (!node.has(input)) return node.full(dtype_of(r.data), {r.batch, r.hidden}, 0);
  Expr state = node.in(input);
  if (rank_of(state) != 3) return bad_model("an initial state has rank {}", rank_of(state));
  if (r.batch_first) state = TRY(node.transpose(state, {1, 0, 2}));
  if (shape_of(state) != Shape{r.directions, r.batch, r.hidden})
    return bad_model("an initial state has shape {}", shape_to_string(node.shape(input)));
  return entry(node, state, index);
}

using Step = std::function<Result<State>(const Direction&, const Expr& inputs, const State&)>;

// What is left of a step's new state in sequences that ended before it, and its output there.
Result<Expr> end_sequences(NodeContext& node, const Recurrent& r, int64_t step, const State& before,
                           State& state) {
  if (r.lengths == nullptr || step < r.shortest) return state.h;
  Expr at = TRY(node.scalar_like(r.lengths, static_cast<double>(step)));
  Expr runs = TRY(node.call("less", {at, r.lengths}));
  Expr output = TRY(node.call("where", {runs, state.h, TRY(node.scalar_like(state.h, 0))}));
  state.h = TRY(node.call("where", {runs, state.h, before.h}));
  if (state.c != nullptr) state.c = TRY(node.call("where", {runs, state.c, before.c}));
  return output;
}

// (D, B, H), or (B, D, H) with layout 1.
Result<Expr> join_states(NodeContext& node, const Recurrent& r, const std::vector<Expr>& states) {
  return node.call("stack", {make_tuple(states)},
                   {{"axis", static_cast<int64_t>(r.batch_first ? 1 : 0)}});
}

Result<Outputs> unroll(NodeContext& node, const Recurrent& r, bool fold_recurrence_bias,
                       const Step& step) {
  std::vector<Expr> sequences, last_h, last_c;
  for (int64_t index = 0; index < r.directions; ++index) {
    Direction d = TRY(read_direction(node, r, index, fold_recurrence_bias));
    if (node.has(7)) d.peepholes = TRY(entry(node, node.in(7), index));
    State state{TRY(initial_state(node, r, 5, index)), nullptr};
    if (r.gates == 4) state.c = TRY(initial_state(node, r, 6, index));
    const bool backwards = r.direction == "reverse" || index == 1;
    std::vector<Expr> outputs(static_cast<size_t>(r.steps));
    for (int64_t i = 0; i < r.steps; ++i) {
      const size_t at = static_cast<size_t>(backwards ? r.steps - 1 - i : i);
      State next = TRY(step(d, d.inputs[at], state));
      outputs[at] = TRY(end_sequences(node, r, static_cast<int64_t>(at), state, next));
      state = std::move(next);
    }
    sequences.push_back(TRY(node.call("stack", {make_tuple(outputs)}, {{"axis", int64_t{0}}})));
    last_h.push_back(state.h);
    if (state.c != nullptr) last_c.push_back(state.c);
  }
  Outputs outputs;  // (T, D, B, H), or (B, T, D, H) with layout 1
  Expr y = TRY(node.call("stack", {make_tuple(sequences)}, {{"axis", int64_t{1}}}));
  outputs.push_back(r.batch_first ? TRY(node.transpose(y, {2, 0, 1, 3})) : y);
  outputs.push_back(TRY(join_states(node, r, last_h)));
  if (!last_c.empty()) outputs.push_back(TRY(join_states(node, r, last_c)));
  return outputs;
}

Result<Outputs> convert_rnn(NodeContext& node) {
  const Recurrent r = TRY(read_recurrent(node, 1, {"Tanh"}));
  return unroll(node, r, true,
                [&](const Direction& d, const Expr& inputs, const State& state) -> Result<State> {
                  Expr product = TRY(node.call("nn.dense", {state.h, d.recurrence}));
                  Expr sum = TRY(node.call("add", {inputs, product}));
                  return State{TRY(activate(node, r, d, 0, sum)), nullptr};
                });
}

// Gates z, r, h. h' = (1 - z)·g(…) + z·h, where the candidate sees r·h through R, or with
// linear_before_reset r·(R·h + its bias).
Result<Outputs> convert_gru(NodeContext& node) {
  const Recurrent r = TRY(read_recurrent(node, 3, {"Sigmoid", "Tanh"}));
  const bool linear = TRY(node.flag("linear_before_reset", false));
  return unroll(
      node, r, !linear,
      [&](const Direction& d, const Expr& inputs, const State& state) -> Result<State> {
        const int64_t h = r.hidden;
        Expr candidate_weight = TRY(slice(node, d.recurrence, 0, 2 * h, 3 * h));
        Expr products, candidate_product;
        if (linear) {
          Expr all = TRY(node.call("nn.dense", {state.h, d.recurrence}));
          if (d.recurrence_bias != nullptr)
            all = TRY(node.call("nn.bias_add", {all, d.recurrence_bias}, {{"axis", int64_t{-1}}}));
          products = TRY(slice(node, all, 1, 0, 2 * h));
          candidate_product = TRY(slice(node, all, 1, 2 * h, 3 * h));
        } else {
          Expr weight = TRY(slice(node, d.recurrence, 0, 0, 2 * h));
          products = TRY(node.call("nn.dense", {state.h, weight}));
        }
        Expr gates = TRY(slice(node, inputs, 1, 0, 2 * h));
        gates = TRY(activate(node, r, d, 0, TRY(node.call("add", {gates, products}))));
        Expr update = TRY(gate(node, r, gates, 0)), reset = TRY(gate(node, r, gates, 1));
        if (linear) {
          candidate_product = TRY(node.call("multiply", {reset, candidate_product}));
        } else {
          Expr seen = TRY(node.call("multiply", {reset, state.h}));
          candidate_product = TRY(node.call("nn.dense", {seen, candidate_weight}));
        }
        Expr candidate = TRY(gate(node, r, inputs, 2));
        candidate = TRY(node.call("add", {candidate, candidate_product}));
        candidate = TRY(activate(node, r, d, 1, candidate));
        Expr keep = TRY(node.call("multiply", {update, state.h}));
        Expr rest = TRY(node.call("subtract", {TRY(node.scalar_like(update, 1)), update}));
        Expr take = TRY(node.call("multiply", {rest, candidate}));
        return State{TRY(node.call("add", {take, keep})), nullptr};
      });
}

// Gates i, o, f, c. c' = f·c + i·g(…), h' = o·h(c'); peepholes let i, f see c and o see c'.
Result<Outputs> convert_lstm(NodeContext& node) {
  const Recurrent r = TRY(read_recurrent(node, 4, {"Sigmoid", "Tanh", "Tanh"}));
  TRY(check_shape(node, 7, "P", {r.directions, 3 * r.hidden}));
  const bool coupled = TRY(node.flag("input_forget", false));
  return unroll(
      node, r, true,
      [&](const Direction& d, const Expr& inputs, const State& state) -> Result<State> {
        Expr product = TRY(node.call("nn.dense", {state.h, d.recurrence}));
        Expr gates = TRY(node.call("add", {inputs, product}));
        auto with_peephole = [&](int64_t index, int64_t hole, const Expr& cell) -> Result<Expr> {
          Expr sum = TRY(gate(node, r, gates, index));
          if (d.peepholes == nullptr) return sum;
          Expr seen = TRY(node.call("multiply", {TRY(gate(node, r, d.peepholes, hole)), cell}));
          return node.call("add", {sum, seen});
        };
        Expr in = TRY(activate(node, r, d, 0, TRY(with_peephole(0, 0, state.c))));
        Expr forget = coupled ? TRY(node.call("subtract", {TRY(node.scalar_like(in, 1)), in}))
                              : TRY(activate(node, r, d, 0, TRY(with_peephole(2, 2, state.c))));
        Expr candidate = TRY(activate(node, r, d, 1, TRY(gate(node, r, gates, 3))));
        Expr cell = TRY(node.call("add", {TRY(node.call("multiply", {forget, state.c})),
                                          TRY(node.call("multiply", {in, candidate}))}));
        Expr out = TRY(activate(node, r, d, 0, TRY(with_peephole(1, 1, cell))));
        Recurrent unclipped = r;
        unclipped.clip = 0;
        Expr shown = TRY(activate(node, unclipped, d, 2, cell));
        return State{TRY(node.call("multiply", {out, shown})), cell};
      });
}

}  // namespace

ConverterRows recurrent_converters() {
  return {
      {"GRU", 3, 6, convert_gru},
      {"LSTM", 3, 8, convert_lstm},
      {"RNN", 3, 6, convert_rnn},
  };
}

}  // namespace collage::frontend
