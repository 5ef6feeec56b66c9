// RNN, GRU and LSTM: each is one call, whatever its layout, and its attributes are checked.
#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

TEST(Recurrent, IsOneCallHoweverManySteps) {
  ModelBuilder m;
  m.input("x", {"50000", "1", "1"}).constant("w", ramp({1, 4, 1})).constant("r", ramp({1, 4, 1}));
  m.node("LSTM", {"x", "w", "r"}, {"y", "", "c"});
  m.output("y").output("c");
  EXPECT_THAT(m.ops(), ElementsAre("nn.lstm"));
}

// The same batch is second, and first with layout 1.
TEST(Recurrent, Layouts) {
  const auto states_of = [](int64_t layout, const Tensor& x) {
    ModelBuilder m;
    m.input("x", {"2", "2", "1"}).constant("w", floats({1, 1, 1}, {1}));
    m.constant("r", floats({1, 1, 1}, {1}));
    m.constant("h0", layout == 0 ? floats({1, 2, 1}, {10, 20}) : floats({2, 1, 1}, {10, 20}));
    m.node("RNN", {"x", "w", "r", "", "", "h0"}, {"y", "h"})
        .texts("activations", {"Affine"})
        .integer("layout", layout);
    m.output("y").output("h");
    return m.run({x});
  };
  const auto first = states_of(0, floats({2, 2, 1}, {1, 2, 3, 4}));
  expect_values(first[0], {2, 1, 2, 1}, {11, 22, 14, 26});
  expect_values(first[1], {1, 2, 1}, {14, 26});
  const auto second = states_of(1, floats({2, 2, 1}, {1, 3, 2, 4}));
  expect_values(second[0], {2, 2, 1, 1}, {11, 14, 22, 26});
  expect_values(second[1], {2, 1, 1}, {14, 26});
}

// A running sum, as an RNN: h' = x + h.
NodeBuilder running_sum(ModelBuilder& m, const char* direction) {
  const int64_t count = std::string(direction) == "bidirectional" ? 2 : 1;
  m.constant("w",
             Tensor::from<float>({count, 1, 1}, std::vector<float>(static_cast<size_t>(count), 1)));
  m.constant("r",
             Tensor::from<float>({count, 1, 1}, std::vector<float>(static_cast<size_t>(count), 1)));
  NodeBuilder node = m.node("RNN", {"x", "w", "r", "", "lens", "h0"}, {"y", "h"});
  for (std::string& name : *node.text("direction", direction).proto().mutable_input())
    if (name == "h0" && count == 2) name = "";
  node.texts("activations", std::vector<std::string>(static_cast<size_t>(count), "Affine"));
  m.output("y").output("h");
  return node;
}

TEST(Recurrent, SequencesEndWhereTheirLengthsSay) {
  for (const bool known : {true, false}) {
    ModelBuilder m;
    m.input("x", {"3", "3", "1"}).constant("h0", floats({1, 3, 1}, {100, 200, 300}));
    const Tensor lengths = Tensor::from<int32_t>({3}, {1, 3, 0});
    if (known) {
      m.constant("lens", lengths);
    } else {
      m.input("lens", {"3"}, onnx::TensorProto::INT32);
    }
    running_sum(m, "forward");
    std::vector<Tensor> inputs = {ramp({3, 3, 1})};
    if (!known) inputs.push_back(lengths);
    const std::vector<Tensor> results = m.run(inputs);
    expect_values(results[0], {3, 1, 3, 1}, {100, 201, 0, 0, 205, 0, 0, 212, 0});
    expect_values(results[1], {1, 3, 1}, {100, 212, 300});
  }
}

TEST(Recurrent, SequencesRunBackwardsFromTheirEnds) {
  ModelBuilder m;
  m.input("x", {"3", "2", "1"}).input("lens", {"2"}, onnx::TensorProto::INT32);
  running_sum(m, "bidirectional");
  const std::vector<Tensor> results =
      m.run({floats({3, 2, 1}, {1, 10, 2, 20, 4, 40}), Tensor::from<int32_t>({2}, {2, 3})});
  // For each step: both sequences forwards, both backwards.
  expect_values(results[0], {3, 2, 2, 1}, {1, 10, 3, 70, 3, 30, 2, 60, 0, 70, 0, 40});
  expect_values(results[1], {2, 2, 1}, {3, 70, 3, 70});
}

TEST(Recurrent, LengthsThatAreNone) {
  for (const int32_t length : {-1, 4}) {
    ModelBuilder m;
    m.input("x", {"3", "1", "1"}).constant("lens", Tensor::from<int32_t>({1}, {length}));
    m.constant("h0", ramp({1, 1, 1}));
    running_sum(m, "forward");
    expect_error(m.import(), ErrorCode::kBadModel, fmt::format("a sequence of {} steps", length));
  }
}

TEST(Recurrent, ActivationsTakeTheirParametersInTurn) {
  // One step from zero: i = f(x), o = f(x), c = g(x) · i, h = o · h(c), with W of ones.
  ModelBuilder m;
  m.input("x", {"1", "1", "1"}).constant("w", floats({1, 4, 1}, {1, 1, 1, 1}));
  m.constant("r", Tensor::zeros(DType::kFloat32, {1, 4, 1}));
  NodeBuilder node = m.node("LSTM", {"x", "w", "r"}, {"y"});
  node.reals("activation_alpha", {0.5f, 3}).reals("activation_beta", {0.25f});
  // 0.5 · x + 0.25; relu has none; 3 · x below zero.
  node.texts("activations", {"HardSigmoid", "Relu", "LeakyRelu"});
  m.output("y");
  expect_values(m.run({floats({1, 1, 1}, {1})})[0], {1, 1, 1, 1}, {0.75 * 0.75});
  ModelBuilder unknown;
  unknown.input("x", {"1", "1", "1"}).constant("w", ramp({1, 1, 1}));
  unknown.constant("r", ramp({1, 1, 1}));
  unknown.node("RNN", {"x", "w", "r"}, {"y"}).texts("activations", {"Swirl"});
  unknown.output("y");
  expect_error(unknown.import(), ErrorCode::kBadModel, "activation 'Swirl' is unknown");
}

TEST(Recurrent, ReverseAndBidirectional) {
  // h' = tanh(x + h): with tiny values about the running sum from each side.
  ModelBuilder m;
  m.input("x", {"3", "1", "1"}).constant("w", floats({2, 1, 1}, {1, 1}));
  m.constant("r", floats({2, 1, 1}, {1, 1}));
  m.node("RNN", {"x", "w", "r"}, {"y", "h"}).text("direction", "bidirectional");
  m.output("y").output("h");
  std::vector<Tensor> results = m.run({floats({3, 1, 1}, {1e-3f, 2e-3f, 4e-3f})});
  expect_values(results[0], {3, 2, 1, 1}, {1e-3, 7e-3, 3e-3, 6e-3, 7e-3, 4e-3});
  expect_values(results[1], {2, 1, 1}, {7e-3, 7e-3});
}

}  // namespace
}  // namespace collage
