// Recurrent layers of every kind, at sizes around those of panels, rows and chunks, in every
// variant against the interpreter.
#include <gmock/gmock.h>

#include <set>

#include "backend/check.h"
#include "backend/recurrent/kernels/steps.h"
#include "backend/recurrent/recurrent_backend.h"

namespace collage::testing {
namespace {

const Target kTarget{"recurrent", {}, {}};

const Backend& backend() {
  static const std::unique_ptr<Backend> backend = make_recurrent_backend();
  return *backend;
}

struct Sizes {
  int64_t steps, batch, inputs, hidden;
};

struct Case {
  std::string op;
  Sizes sizes;
  Attrs attrs = {};
  bool constant_states = true;
};

/// The layer's results, as a tuple.
Function layer(const Case& c) {
  Graph graph;
  const int64_t gates = c.op == "nn.rnn" ? 1 : c.op == "nn.gru" ? 3 : 4;
  const auto given = c.attrs.find("direction");
  const int64_t directions =
      given != nullptr && std::get<std::string>(*given) == "bidirectional" ? 2 : 1;
  const Sizes& s = c.sizes;
  const auto state = [&] {
    const Shape shape = {directions, s.batch, s.hidden};
    return c.constant_states ? graph.constant(shape) : graph.input(shape);
  };
  Tensor lengths = *Tensor::allocate(DType::kInt32, {s.batch});
  for (int64_t i = 0; i < s.batch; ++i) lengths.data<int32_t>()[i] = static_cast<int32_t>(s.steps);
  std::vector<Expr> args = {graph.input({s.steps, s.batch, s.inputs}),
                            graph.constant({directions, gates * s.hidden, s.inputs}, 0.4),
                            graph.constant({directions, gates * s.hidden, s.hidden}, 0.3),
                            graph.constant({directions, 2 * gates * s.hidden}),
                            make_constant(std::move(lengths)),
                            state()};
  if (gates == 4) args.push_back(state());
  return graph.function(graph.call(c.op, std::move(args), c.attrs));
}

TEST(RecurrentLayers, OfAllSizesMatchTheReference) {
  for (const Sizes& sizes : {Sizes{1, 1, 1, 1}, Sizes{3, 1, 5, 16}, Sizes{4, 3, 2, 17},
                             Sizes{2, 5, 16, 33}, Sizes{7, 4, 3, 8}}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (const bool constant_states : {true, false})
        for (const char* op : {"nn.rnn", "nn.gru", "nn.lstm"}) {
          SCOPED_TRACE(::testing::Message() << op << " " << direction << " of " << sizes.hidden);
          Attrs attrs = {{"direction", std::string(direction)}};
          if (op == std::string("nn.gru")) attrs.set("linear_before_reset", true);
          const Function function = layer({op, sizes, attrs, constant_states});
          check_variants(backend(), kTarget, function, random_inputs(function));
        }
  }
}

/// Products with inputs of more steps than are made at once, also where the rest is no whole chunk.
TEST(RecurrentLayers, GoFromChunkToChunk) {
  constexpr Sizes kSizes = {70, 64, 3, 64};
  recurrent::Layer counted{.gates = 4, .steps = 70, .batch = 64, .inputs = 3, .hidden = 64};
  ASSERT_EQ(counted.chunk(), 64);
  for (const char* direction : {"forward", "reverse"}) {
    const Function function =
        layer({"nn.lstm", kSizes, {{"direction", std::string(direction)}}, false});
    check_variants(backend(), kTarget, function, random_inputs(function));
  }
}

TEST(RecurrentLayers, MayHaveRelu) {
  const Function function =
      layer({"nn.rnn", {4, 2, 3, 20}, {{"activations", std::string("relu")}}});
  check_variants(backend(), kTarget, function, random_inputs(function));
}

/// A saturated gate is 0 or 1, a large state stays one.
TEST(RecurrentLayers, OfLargeNumbersSaturate) {
  for (const char* op : {"nn.rnn", "nn.gru", "nn.lstm"}) {
    Attrs attrs;
    if (op == std::string("nn.gru")) attrs.set("linear_before_reset", true);
    const Function function = layer({op, {3, 2, 4, 16}, attrs});
    std::vector<Tensor> inputs = random_inputs(function);
    float* data = inputs[0].data<float>();
    for (int64_t i = 0; i < inputs[0].size(); ++i) data[i] *= i % 3 == 0 ? 1e4f : 1e-20f;
    check_variants(backend(), kTarget, function, inputs);
  }
}

TEST(RecurrentLayers, WithoutAKernelAreRefused) {
  const auto reason = [](const Case& c) {
    const auto list = backend().variants(layer(c), kTarget, {});
    return list.ok() ? "" : list.status().to_string();
  };
  using ::testing::HasSubstr;
  const Sizes sizes = {2, 1, 3, 4};
  EXPECT_EQ(reason({"nn.lstm", sizes}), "");
  EXPECT_THAT(reason({"nn.gru", sizes}), HasSubstr("a reset in front of the product"));
  EXPECT_THAT(reason({"nn.lstm", sizes, {{"input_forget", true}}}), HasSubstr("input_forget"));
  EXPECT_THAT(reason({"nn.rnn", sizes, {{"clip", 0.5}}}), HasSubstr("clip"));
  EXPECT_THAT(reason({"nn.rnn", sizes, {{"activations", std::string("softsign")}}}),
              HasSubstr("activation softsign"));
}

/// Every case of the operators; of other operators none is taken.
class RecurrentOperators : public ::testing::TestWithParam<std::string> {};

TEST_P(RecurrentOperators, MatchTheReference) {
  std::set<std::string> refused;
  for (const std::string& name : operators_with_cases())
    if (name != "nn.rnn" && name != "nn.gru" && name != "nn.lstm") refused.insert(name);
  check_operator(backend(), kTarget, GetParam(), refused,
                 [&](const Function& function, const std::vector<Tensor>& inputs) {
                   check_variants(backend(), kTarget, function, inputs);
                 });
}

INSTANTIATE_TEST_SUITE_P(Operators, RecurrentOperators,
                         ::testing::Values("nn.rnn", "nn.gru", "nn.lstm", "tanh"),
                         test_name_of_operator);

}  // namespace
}  // namespace collage::testing
