// The recurrent operators nn.rnn, nn.gru and nn.lstm (ONNX RNN, GRU, LSTM), for the importer, the
// type rule, the kernel and backends:
//
//   (y, h) = nn.gru(data, weight, recurrence, bias, lengths, h0)
//   (y, h, c) = nn.lstm(data, weight, recurrence, bias, lengths, h0, c0[, peepholes])
//
//   data (T, B, I)   weight (D, G·H, I)   recurrence (D, G·H, H)   bias (D, 2·G·H)   lengths (B)
//   h0, c0, h, c (D, B, H)   peepholes (D, 3·H)   y (T, D, B, H)
//
// T steps, B sequences, D directions; G gates: 1 of nn.rnn; z, r, h of nn.gru; i, o, f, c of
// nn.lstm. The first half of the bias is added to the product with weight, the second to that with
// recurrence. Behind the end of a sequence y is 0 and the state stays; the second direction, and
// the only one of "reverse", runs from each sequence's end.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/attrs.h"

namespace collage {

struct RecurrentOp {
  std::string_view name, onnx_name;
  int64_t gates;
  std::vector<std::string_view> activations;  // of a direction, where the attribute is empty
};
std::span<const RecurrentOp> recurrent_ops();
// Returns null where the operator is none of these.
const RecurrentOp* find_recurrent_op(std::string_view name);

// What an activation may be, with the defaults of the parameters that it has.
struct RecurrentFunction {
  std::string_view name;
  std::optional<double> alpha, beta;
  double (*value)(double x, double alpha, double beta);
};
const RecurrentFunction* find_recurrent_function(std::string_view name);

struct RecurrentActivation {
  const RecurrentFunction* function;
  double alpha, beta;
  double operator()(double x) const { return function->value(x, alpha, beta); }
};
// Reads the attributes `activations` (names and blanks), `alpha` and `beta` (empty, or a number for
// each): all of the first direction, then all of the second.
Result<std::vector<RecurrentActivation>> recurrent_activations(const RecurrentOp& op,
                                                               const Attrs& attrs);
// Returns 1 or 2.
int64_t recurrent_directions(const Attrs& attrs);

}  // namespace collage
