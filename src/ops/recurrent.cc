// nn.rnn, nn.gru, nn.lstm: a loop over steps. The products of inputs with weights are made for many
// steps at once; each step multiplies the state by the recurrent weights. All is in double, the
// state included; only results are rounded.
#include "ops/recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/families.h"
#include "ops/product.h"

namespace collage {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

constexpr RecurrentFunction kFunctions[] = {
    {"affine", 1.0, 0.0, [](double x, double a, double b) { return a * x + b; }},
    {"elu", 1.0, {}, [](double x, double a, double) { return x > 0 ? x : a * std::expm1(x); }},
    {"hardsigmoid", 0.2, 0.5,
     [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    {"leakyrelu", 0.01, {}, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    {"relu", {}, {}, [](double x, double, double) { return x < 0 ? 0 : x; }},
    {"scaledtanh", 1.0, 1.0, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"sigmoid", {}, {}, [](double x, double, double) { return logistic(x); }},
    {"softplus",
     {},
     {},
     [](double x, double, double) {
       return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
     }},
    {"softsign", {}, {}, [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"tanh", {}, {}, [](double x, double, double) { return std::tanh(x); }},
    {"thresholdedrelu", 1.0, {}, [](double x, double a, double) { return x > a ? x : 0; }},
};

// A call, read.
struct Recurrent {
  int64_t gates = 1, directions = 1;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  bool reverse = false, linear_before_reset = false, input_forget = false;
  double clip = 0;  // none
  std::vector<RecurrentActivation> activations;

  int64_t rows() const { return gates * hidden; }
  int64_t cells() const { return batch * hidden; }
};

Result<Recurrent> read_recurrent(const RecurrentOp& op, const Shape& data, const Shape& recurrence,
                                 const Attrs& attrs) {
  Recurrent r;
  r.gates = op.gates;
  r.directions = recurrent_directions(attrs);
  r.steps = data[0];
  r.batch = data[1];
  r.inputs = data[2];
  r.hidden = recurrence[2];
  r.reverse = attrs.string("direction") == "reverse";
  r.clip = attrs.real("clip");
  if (op.gates == 3) r.linear_before_reset = attrs.flag("linear_before_reset");
  if (op.gates == 4) r.input_forget = attrs.flag("input_forget");
  r.activations = TRY(recurrent_activations(op, attrs));
  return r;
}

Result<Type> infer_recurrent(const RecurrentOp& op, Types args, const Attrs& attrs) {
  const char* const names[] = {"data",    "weight", "recurrence", "bias",
                               "lengths", "h0",     "c0",         "peepholes"};
  std::vector<TensorType> types;
  for (size_t i = 0; i < args.size(); ++i) types.push_back(TRY(tensor_arg(args, i)));
  TRY(require_float(types[0], "data"));
  for (size_t i = 0; i < 3; ++i) TRY(require_rank(types[i], 3, names[i]));
  TRY(require_one_of(attrs.string("direction"), {"forward", "reverse", "bidirectional"},
                     "direction"));
  if (!std::isfinite(attrs.real("clip"))) return bad_model("clip {}", attrs.real("clip"));
  const Recurrent r = TRY(read_recurrent(op, types[0].shape, types[2].shape, attrs));
  const int64_t rows = TRY(checked_multiply(2 * r.gates, r.hidden, "gates")) / 2;
  const Shape state = {r.directions, r.batch, r.hidden};
  const Shape shapes[] = {types[0].shape,
                          {r.directions, rows, r.inputs},
                          {r.directions, rows, r.hidden},
                          {r.directions, 2 * rows},
                          {r.batch},
                          state,
                          state,
                          {r.directions, op.gates == 4 ? 3 * r.hidden : 0}};
  for (size_t i = 1; i < types.size(); ++i) {
    if (i == 4) {
      TRY(require_integer(types[i], names[i]));
    } else {
      TRY(require_same_dtype(types[0], types[i]));
    }
    TRY(require_shape(types[i], shapes[i], names[i]));
  }
  const DType dtype = types[0].dtype;
  std::vector<Type> results = {
      TRY(tensor_result({r.steps, r.directions, r.batch, r.hidden}, dtype)),
      TRY(tensor_result(state, dtype))};
  if (op.gates == 4) results.push_back(results[1]);
  return Type::tuple(std::move(results));
}

// c[i * stride + j] = (A·B)[i, j]
void multiply(const Product& shape, const FillPanel& a, const FillPanel& b, double* c,
              int64_t stride) {
  blocked_product(shape, a, b,
                  [=](int64_t, int64_t row, int64_t rows, int64_t column, int64_t columns,
                      const double* from, int64_t from_stride) {
                    for (int64_t i = 0; i < rows; ++i)
                      std::copy_n(from + i * from_stride, columns, c + (row + i) * stride + column);
                  });
}
template <typename T>
FillPanel panel_of(const T* data, int64_t row_stride, int64_t column_stride) {
  return strided_panel(
      data, [](int64_t) { return int64_t{0}; }, row_stride, column_stride);
}

// One direction of a call.
template <typename T>
class Direction {
 public:
  Direction(const Recurrent& r, std::span<const Tensor> in, std::span<Tensor> out, int64_t index)
      : r_(r),
        in_(in),
        out_(out),
        index_(index),
        activations_(&r.activations[r.activations.size() / static_cast<size_t>(r.directions) *
                                    static_cast<size_t>(index)]),
        recurrence_(static_cast<size_t>(r.hidden * r.rows())),
        sums_(static_cast<size_t>(r.batch * r.rows())),
        seen_(static_cast<size_t>(r.gates == 3 ? r.cells() : 0)) {
    const int64_t rows = r.rows();
    const T* given = of(2, rows * r.hidden);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t k = 0; k < r.hidden; ++k)
        recurrence_[static_cast<size_t>(k * rows + row)] =
            static_cast<double>(given[row * r.hidden + k]);
    const T* bias = of(3, 2 * rows);
    for (int64_t row = 0; row < rows; ++row) {
      const bool apart = r.linear_before_reset && row >= 2 * r.hidden;
      bias_.push_back(static_cast<double>(bias[row]) +
                      (apart ? 0 : static_cast<double>(bias[rows + row])));
      if (apart) candidate_bias_.push_back(static_cast<double>(bias[rows + row]));
    }
    for (size_t i = 0; i + 5 < std::min<size_t>(in.size(), 7); ++i) {
      const T* state = of(5 + i, r.cells());
      state_[i].assign(state, state + r.cells());
    }
    if (in.size() > 7) {
      const T* peepholes = of(7, 3 * r.hidden);
      peepholes_.assign(peepholes, peepholes + 3 * r.hidden);
    }
  }

  void run() {
    constexpr int64_t kAtOnce = int64_t{1} << 20;  // products
    const int64_t rows = r_.rows(), each = std::max<int64_t>(r_.batch * rows, 1);
    const int64_t most = std::clamp<int64_t>(kAtOnce / each, 1, std::max<int64_t>(r_.steps, 1));
    const bool backwards = r_.reverse || index_ == 1;
    std::vector<double> products(static_cast<size_t>(most * r_.batch * rows));
    for (int64_t done = 0; done < r_.steps; done += most) {
      const int64_t count = std::min(most, r_.steps - done);
      const int64_t first = backwards ? r_.steps - done - count : done;
      multiply({1, count * r_.batch, rows, r_.inputs},
               panel_of(in_[0].data<T>() + first * r_.batch * r_.inputs, r_.inputs, 1),
               panel_of(of(1, rows * r_.inputs), 1, r_.inputs), products.data(), rows);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = backwards ? count - 1 - i : i;
        advance(first + at, products.data() + at * r_.batch * rows);
      }
    }
    for (size_t i = 0; i + 1 < out_.size(); ++i)
      std::transform(state_[i].begin(), state_[i].end(),
                     out_[i + 1].template data<T>() + index_ * r_.cells(),
                     [](double x) { return static_cast<T>(x); });
  }

 private:
  // This direction's part of an input.
  const T* of(size_t input, int64_t elements) const {
    return in_[input].data<T>() + index_ * elements;
  }
  double activate(size_t which, double x) const {
    if (r_.clip > 0) x = std::clamp(x, -r_.clip, r_.clip);
    return activations_[which](x);
  }
  // Columns [begin, end) of state · recurrence. A small product is not worth a team at every step.
  void multiply_state(const std::vector<double>& state, int64_t begin, int64_t end) {
    constexpr int64_t kSmall = int64_t{1} << 18;
    const int64_t hidden = r_.hidden, rows = r_.rows();
    if (r_.batch * hidden * (end - begin) > kSmall) {
      multiply({1, r_.batch, end - begin, hidden}, panel_of(state.data(), hidden, 1),
               panel_of(recurrence_.data() + begin, rows, 1), sums_.data() + begin, rows);
      return;
    }
    for (int64_t b = 0; b < r_.batch; ++b) {
      double* sums = sums_.data() + b * rows;
      std::fill(sums + begin, sums + end, 0.0);
      for (int64_t k = 0; k < hidden; ++k) {
        const double x = state[static_cast<size_t>(b * hidden + k)];
        const double* weights = recurrence_.data() + k * rows;
#pragma omp simd
        for (int64_t j = begin; j < end; ++j) sums[j] += x * weights[j];
      }
    }
  }

  // `products`: of the step's inputs, (B, G·H).
  void advance(int64_t step, const double* products) {
    const int64_t hidden = r_.hidden, rows = r_.rows();
    const bool gru = r_.gates == 3;
    multiply_state(state_[0], 0, gru && !r_.linear_before_reset ? 2 * hidden : rows);
    const auto sum = [&](int64_t b, int64_t gate, int64_t j) {
      const int64_t column = gate * hidden + j;
      return products[b * rows + column] + sums_[static_cast<size_t>(b * rows + column)] +
             bias_[static_cast<size_t>(column)];
    };
    if (gru) {
      for_cells([&](int64_t b, int64_t j, size_t at) { seen_[at] = activate(0, sum(b, 1, j)); });
      if (!r_.linear_before_reset) {
        for (size_t at = 0; at < seen_.size(); ++at) seen_[at] *= state_[0][at];
        multiply_state(seen_, 2 * hidden, rows);
      }
    }
    T* y = out_[0].data<T>() + (step * r_.directions + index_) * r_.cells();
    for_cells([&](int64_t b, int64_t j, size_t at) {
      if (step >= in_[4].element_as_int64(b)) {
        y[at] = 0;
        return;
      }
      double& h = state_[0][at];
      if (r_.gates == 1) {
        h = activate(0, sum(b, 0, j));
      } else if (gru) {
        h = gru_cell(sum(b, 0, j), products[b * rows + 2 * hidden + j], b, j, at, h);
      } else {
        h = lstm_cell({sum(b, 0, j), sum(b, 1, j), sum(b, 2, j), sum(b, 3, j)}, j, state_[1][at]);
      }
      y[at] = static_cast<T>(h);
    });
  }

  // The candidate sees seen · R, or with linear_before_reset what was seen times h · R.
  double gru_cell(double update_sum, double product, int64_t b, int64_t j, size_t at,
                  double h) const {
    const auto column = static_cast<size_t>(2 * r_.hidden + j);
    double recurrent = sums_[static_cast<size_t>(b * r_.rows()) + column];
    if (r_.linear_before_reset)
      recurrent = seen_[at] * (recurrent + candidate_bias_[static_cast<size_t>(j)]);
    const double update = activate(0, update_sum);
    const double candidate = activate(1, product + bias_[column] + recurrent);
    return (1 - update) * candidate + update * h;
  }

  // Peepholes let i and f see the cell, o the new one.
  double lstm_cell(std::array<double, 4> sums, int64_t j, double& cell) const {
    const auto hole = [&](int64_t gate) {
      return peepholes_.empty() ? 0 : peepholes_[static_cast<size_t>(gate * r_.hidden + j)];
    };
    const double in = activate(0, sums[0] + hole(0) * cell);
    const double forget = r_.input_forget ? 1 - in : activate(0, sums[2] + hole(2) * cell);
    cell = forget * cell + in * activate(1, sums[3]);
    return activate(0, sums[1] + hole(1) * cell) * activations_[2](cell);
  }

  // body(sequence, column, position)
  template <typename Body>
  void for_cells(const Body& body) const {
    const int64_t cells = r_.cells();
#pragma omp parallel for schedule(static) if (cells > 2048)
    for (int64_t at = 0; at < cells; ++at)
      body(at / r_.hidden, at % r_.hidden, static_cast<size_t>(at));
  }

  const Recurrent& r_;
  std::span<const Tensor> in_;
  std::span<Tensor> out_;
  int64_t index_;
  const RecurrentActivation* activations_;
  std::vector<double> recurrence_;  // (H, G·H)
  std::vector<double> sums_;        // state · recurrence, (B, G·H)
  std::vector<double> seen_;        // GRU: the reset gate, or the state times it
  std::vector<double> bias_, candidate_bias_, peepholes_;
  std::array<std::vector<double>, 2> state_;  // h, c
};

Status run_recurrent(const RecurrentOp& op, std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) {
  const Recurrent r = TRY(read_recurrent(op, inputs[0].shape(), inputs[2].shape(), attrs));
  for (int64_t b = 0; b < r.batch; ++b)
    if (const int64_t length = inputs[4].element_as_int64(b); length < 0 || length > r.steps)
      return bad_model("a sequence of {} steps, there are {}", length, r.steps);
  if (r.cells() == 0) return {};
  dispatch_float(inputs[0].dtype(), [&]<typename T>(Tag<T>) {
    for (int64_t index = 0; index < r.directions; ++index)
      Direction<T>(r, inputs, outputs, index).run();
  });
  return {};
}

double recurrent_work(Types args, const Attrs&, const Type&) {
  const Shape &data = args[0].tensor().shape, &recurrence = args[2].tensor().shape;
  const auto steps = static_cast<double>(data[0]) * static_cast<double>(data[1]);
  return 2 * steps * static_cast<double>(num_elements({recurrence[0], recurrence[1]})) *
         static_cast<double>(data[2] + recurrence[2]);
}

}  // namespace

std::span<const RecurrentOp> recurrent_ops() {
  static const RecurrentOp ops[] = {{"nn.rnn", "RNN", 1, {"tanh"}},
                                    {"nn.gru", "GRU", 3, {"sigmoid", "tanh"}},
                                    {"nn.lstm", "LSTM", 4, {"sigmoid", "tanh", "tanh"}}};
  return ops;
}

const RecurrentOp* find_recurrent_op(std::string_view name) {
  for (const RecurrentOp& op : recurrent_ops())
    if (op.name == name) return &op;
  return nullptr;
}

const RecurrentFunction* find_recurrent_function(std::string_view name) {
  for (const RecurrentFunction& function : kFunctions)
    if (function.name == name) return &function;
  return nullptr;
}

int64_t recurrent_directions(const Attrs& attrs) {
  return attrs.string("direction") == "bidirectional" ? 2 : 1;
}

Result<std::vector<RecurrentActivation>> recurrent_activations(const RecurrentOp& op,
                                                               const Attrs& attrs) {
  std::vector<std::string_view> names;
  std::string_view text = attrs.string("activations");
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    names.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto directions = static_cast<size_t>(recurrent_directions(attrs));
  if (names.empty())
    for (size_t i = 0; i < directions; ++i)
      names.insert(names.end(), op.activations.begin(), op.activations.end());
  if (names.size() != op.activations.size() * directions)
    return bad_model("{} activations", names.size());
  const auto& alpha = std::get<std::vector<double>>(*attrs.find("alpha"));
  const auto& beta = std::get<std::vector<double>>(*attrs.find("beta"));
  for (const auto* list : {&alpha, &beta})
    if (!list->empty() && list->size() != names.size())
      return bad_model("{} parameters of {} activations", list->size(), names.size());
  std::vector<RecurrentActivation> result;
  for (size_t i = 0; i < names.size(); ++i) {
    const RecurrentFunction* function = find_recurrent_function(names[i]);
    if (function == nullptr) return bad_model("activation '{}' is unknown", names[i]);
    result.push_back({function, alpha.empty() ? function->alpha.value_or(0) : alpha[i],
                      beta.empty() ? function->beta.value_or(0) : beta[i]});
  }
  return result;
}

void register_recurrent_ops() {
  for (const RecurrentOp& op : recurrent_ops()) {
    std::vector<AttrSpec> attrs = {{"direction", std::string("forward")},
                                   {"activations", std::string()},
                                   {"alpha", std::vector<double>()},
                                   {"beta", std::vector<double>()},
                                   {"clip", 0.0}};
    if (op.gates == 3) attrs.push_back({"linear_before_reset", false});
    if (op.gates == 4) attrs.push_back({"input_forget", false});
    OpDef def = make_op(
        std::string(op.name), op.gates == 4 ? 7 : 6, std::move(attrs), FusionKind::kOpaque,
        [&op](Types args, const Attrs& given) { return infer_recurrent(op, args, given); },
        with_halves(
            [&op](std::span<const Tensor> inputs, const Attrs& given, std::span<Tensor> outputs) {
              return run_recurrent(op, inputs, given, outputs);
            }),
        recurrent_work);
    if (op.gates == 4) def.max_args = 8;
    register_op(std::move(def));
  }
}

}  // namespace collage
