// nn.rnn, nn.gru and nn.lstm as sequences, where the CPU plugin keeps their loop in one kernel: the
// usual activations, weights that are constant, and sequences that are all as long as the longest.
#include <openvino/op/ops.hpp>

#include "backend/openvino/converter.h"
#include "ops/recurrent.h"

namespace collage::openvino {

namespace {

Value permuted(const Value& value, const Ints& order) {
  return make<ov::op::v1::Transpose>(value, ints(order));
}

Value add(const Value& a, const Value& b) { return make<ov::op::v1::Add>(a, b); }

// Rows of each direction, of so many equal parts [begin, end).
Value rows(const Value& value, int64_t parts, int64_t begin, int64_t end) {
  const auto extent = static_cast<int64_t>(value.get_shape()[1]) / parts;
  return make<ov::op::v8::Slice>(value, ints({begin * extent}), ints({end * extent}), ints({1}),
                                 ints({1}));
}

// Ours are i, o, f, c; OpenVINO's f, i, c, o.
Value lstm_gates(const Value& value) {
  ov::OutputVector parts;
  for (const int64_t gate : {2, 0, 3, 1}) parts.push_back(rows(value, 4, gate, gate + 1));
  return make<ov::op::v0::Concat>(parts, 1);
}

// (B, D, T, H) as (T, D, B, H). A single direction is not transposed as it is: between transposes a
// sequence is compiled for steps first, which a model that was exported and imported forgets.
Value steps_first(const Value& value) {
  const ov::Shape from = value.get_shape();
  const auto extent = [&](size_t i) { return static_cast<int64_t>(from[i]); };
  if (from[1] != 1) return permuted(value, {2, 1, 0, 3});
  const Value flat = reshaped(value, {extent(0), extent(2), extent(3)});
  return reshaped(permuted(flat, {1, 0, 2}), {extent(2), 1, extent(0), extent(3)});
}

Status check_lengths(const CallView& view) {
  const auto lengths = ov::as_type_ptr<ov::op::v0::Constant>(view[4].get_node_shared_ptr());
  if (lengths == nullptr) return unsupported("sequences of any length");
  for (const int64_t length : lengths->cast_vector<int64_t>())
    if (length != view.shape(0)[0]) return unsupported("sequences of several lengths");
  return {};
}

// The names of the activations, where both directions have the same, and the plugin has them.
Result<std::vector<std::string>> activations(const CallView& view, const RecurrentOp& op) {
  std::vector<std::string> names;
  const auto found = TRY(recurrent_activations(op, view.attrs));
  const size_t count = op.activations.size();
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string_view name = found[i].function->name;
    const bool known = name == op.activations[i % count] ||
                       (op.gates == 1 && (name == "relu" || name == "sigmoid"));
    if (!known || (i >= count && name != names[i - count]))
      return unsupported("activation {}", name);
    names.emplace_back(name);
  }
  names.resize(count);
  return names;
}

Result<ov::OutputVector> convert_recurrent(const CallView& view) {
  const RecurrentOp& op = *find_recurrent_op(view.call.op->name);
  for (const size_t weight : {1, 2, 3})
    if (!view.is_constant(weight)) return unsupported("weights that are no constants");
  if (view.size() > 7) return unsupported("peepholes");
  if (view.attrs.real("clip") > 0) return unsupported("a clip before activations");
  TRY(check_lengths(view));
  const std::vector<std::string> functions = TRY(activations(view, op));
  const std::string& direction = view.attrs.string("direction");
  using Direction = ov::op::RecurrentSequenceDirection;
  const Direction how = direction == "forward"   ? Direction::FORWARD
                        : direction == "reverse" ? Direction::REVERSE
                                                 : Direction::BIDIRECTIONAL;
  const Value data = permuted(view[0], {1, 0, 2}), h0 = permuted(view[5], {1, 0, 2});
  const Value& weight = view[1];
  const Value &recurrence = view[2], lengths = view[4];
  const Value of_inputs = rows(view[3], 2, 0, 1), of_states = rows(view[3], 2, 1, 2);
  const auto hidden = static_cast<size_t>(view.shape(2)[2]);
  std::shared_ptr<ov::Node> node;
  if (op.gates == 1) {
    node = std::make_shared<ov::op::v5::RNNSequence>(
        data, h0, lengths, weight, recurrence, add(of_inputs, of_states), hidden, how, functions);
  } else if (op.gates == 3) {
    const bool linear = view.attrs.flag("linear_before_reset");
    Value bias = add(of_inputs, of_states);
    if (linear)
      bias = make<ov::op::v0::Concat>(
          ov::OutputVector{rows(bias, 3, 0, 2), rows(of_inputs, 3, 2, 3), rows(of_states, 3, 2, 3)},
          1);
    node = std::make_shared<ov::op::v5::GRUSequence>(data, h0, lengths, weight, recurrence, bias,
                                                     hidden, how, functions, std::vector<float>(),
                                                     std::vector<float>(), 0.F, linear);
  } else {
    if (view.attrs.flag("input_forget")) return unsupported("input_forget");
    node = std::make_shared<ov::op::v5::LSTMSequence>(
        data, h0, permuted(view[6], {1, 0, 2}), lengths, lstm_gates(weight), lstm_gates(recurrence),
        lstm_gates(add(of_inputs, of_states)), static_cast<int64_t>(hidden), how,
        std::vector<float>(), std::vector<float>(), functions);
  }
  ov::OutputVector results = {steps_first(node->output(0))};
  for (size_t i = 1; i < node->get_output_size(); ++i)
    results.push_back(permuted(node->output(i), {1, 0, 2}));
  return results;
}

}  // namespace

ConverterTable recurrent_converters() {
  return {
      {"nn.rnn", kFloat, convert_recurrent, 4},
      {"nn.gru", kFloat, convert_recurrent, 4},
      {"nn.lstm", kFloat, convert_recurrent, 4},
  };
}

}  // namespace collage::openvino
