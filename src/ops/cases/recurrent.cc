// Cases of the recurrent operators.
#include "ops/recurrent.h"

#include "ops/cases/cases_list.h"

namespace collage {

namespace {

struct Sizes {
  int64_t steps, batch, inputs, hidden;
};

// `ragged`: sequences of any length.
void add_case(Cases& cases, const RecurrentOp& op, const Sizes& s, const char* direction,
              bool ragged, Attrs attrs = {}) {
  attrs.set("direction", std::string(direction));
  const int64_t directions = recurrent_directions(attrs), rows = op.gates * s.hidden;
  const auto most = static_cast<double>(s.steps);
  OpArg lengths = arg(DType::kInt32, {s.batch}, {ragged ? 0 : most, most});
  lengths.is_constant = !ragged;
  std::vector<OpArg> args = {f32({s.steps, s.batch, s.inputs}),
                             weight({directions, rows, s.inputs}),
                             weight({directions, rows, s.hidden}),
                             weight({directions, 2 * rows}),
                             lengths,
                             f32({directions, s.batch, s.hidden})};
  if (op.gates == 4) args.push_back(args.back());
  cases.push_back({std::string(op.name), args, attrs});
  if (op.gates != 4 || !ragged) return;
  args.push_back(weight({directions, 3 * s.hidden}));
  cases.push_back({std::string(op.name), std::move(args), std::move(attrs)});
}

}  // namespace

void add_recurrent_cases(Cases& cases) {
  for (const RecurrentOp& op : recurrent_ops()) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      add_case(cases, op, {5, 3, 4, 6}, direction, true);
      add_case(cases, op, {4, 2, 5, 3}, direction, false);
    }
    add_case(cases, op, {12, 1, 16, 33}, "forward", false);
    add_case(cases, op, {3, 2, 4, 5}, "forward", true, {{"clip", 0.3}});
  }
  const auto gru = *find_recurrent_op("nn.gru"), lstm = *find_recurrent_op("nn.lstm");
  for (const bool ragged : {false, true})
    add_case(cases, gru, {4, 2, 5, 7}, "bidirectional", ragged, {{"linear_before_reset", true}});
  add_case(cases, gru, {2, 4, 5, 190}, "forward", false);  // products that a team shares
  add_case(cases, lstm, {2, 4, 5, 130}, "forward", false);
  add_case(cases, lstm, {4, 2, 5, 7}, "forward", false, {{"input_forget", true}});
  add_case(cases, lstm, {3, 2, 2, 3}, "forward", false,
           {{"activations", std::string("hardsigmoid softsign scaledtanh")},
            {"alpha", std::vector<double>{0.3, 0, 0.9}},
            {"beta", std::vector<double>{0.4, 0, 0.6}}});
  const auto rnn = *find_recurrent_op("nn.rnn");
  add_case(cases, rnn, {4, 2, 3, 5}, "forward", false, {{"activations", std::string("relu")}});
}

}  // namespace collage
