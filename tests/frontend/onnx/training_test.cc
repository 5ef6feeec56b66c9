// Optimisers: steps worked out by hand, with the number of steps known only at run time.
#include <cmath>

#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

// One step of an optimiser for one tensor of one element; all but the rate and count are inputs.
std::vector<Tensor> step(const char* op, int64_t count, const std::vector<float>& values,
                         const std::function<void(NodeBuilder&)>& set) {
  ModelBuilder m;
  m.constant("rate", Tensor::scalar<float>(0.5f)).input("count", {}, onnx::TensorProto::INT64);
  std::vector<std::string> inputs = {"rate", "count"}, outputs;
  std::vector<Tensor> given = {Tensor::scalar<int64_t>(count)};
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.push_back("v" + std::to_string(i));
    m.input(inputs.back(), {"1"});
    given.push_back(floats({1}, {values[i]}));
    if (i > 0) outputs.push_back("y" + std::to_string(i));
  }
  NodeBuilder node = m.node(op, inputs, outputs).domain("ai.onnx.preview.training");
  set(node);
  for (const std::string& name : outputs) m.output(name);
  return m.run(given);
}

TEST(Training, Adagrad) {
  // g = 1 + 0.5·2 = 2, h = 5 + 4 = 9, rate = 0.5 / (1 + 3·1) = 0.125.
  const std::vector<Tensor> results = step("Adagrad", 3, {2, 1, 5}, [](NodeBuilder& n) {
    n.real("norm_coefficient", 0.5f).real("decay_factor", 1).real("epsilon", 1);
  });
  expect_values(results[0], {1}, {2 - 0.125 * 2 / 4});
  expect_values(results[1], {1}, {9});
}

TEST(Training, AdamCorrectsAllButTheFirstStep) {
  for (const int64_t count : {0, 2}) {
    // v = 0.5·4 + 0.5·2 = 3, h = 0.75·4 + 0.25·4 = 4.
    const std::vector<Tensor> results = step("Adam", count, {8, 2, 4, 4}, [](NodeBuilder& n) {
      n.real("alpha", 0.5f).real("beta", 0.75f).real("epsilon", 0);
      n.real("norm_coefficient_post", 0.5f);
    });
    const double rate = count == 0 ? 0.5 : 0.5 * std::sqrt(1 - 0.75 * 0.75) / (1 - 0.5 * 0.5);
    expect_values(results[0], {1}, {0.5 * (8 - rate * 3 / 2)});
    expect_values(results[1], {1}, {3});
    expect_values(results[2], {1}, {4});
  }
}

TEST(Training, MomentumTakesTheFirstGradientWhole) {
  for (const char* mode : {"standard", "nesterov"})
    for (const int64_t count : {0, 1}) {
      const std::vector<Tensor> results = step("Momentum", count, {8, 2, 4}, [&](NodeBuilder& n) {
        n.real("alpha", 0.5f).real("beta", 0.25f).real("norm_coefficient", 0).text("mode", mode);
      });
      const double v = 0.5 * 4 + (count == 0 ? 1 : 0.25) * 2;
      const double change = std::string(mode) == "standard" ? v : 2 + 0.5 * v;
      expect_values(results[0], {1}, {8 - 0.5 * change});
      expect_values(results[1], {1}, {v});
    }
}

TEST(Training, InputsThatDoNotFit) {
  ModelBuilder m;
  m.input("rate", {}).input("count", {}, onnx::TensorProto::INT64).input("x", {"2"});
  m.input("g", {"3"}).input("h", {"2"});
  m.node("Adagrad", {"rate", "count", "x", "g", "h"}, {"y"}).domain("ai.onnx.preview.training");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "input 3 does not fit its tensor");
  ModelBuilder few;
  few.input("rate", {}).input("count", {}, onnx::TensorProto::INT64).input("x", {"2"});
  few.node("Adagrad", {"rate", "count", "x", "x"}, {"y"}).domain("ai.onnx.preview.training");
  few.output("y");
  expect_error(few.import(), ErrorCode::kBadModel, "4 inputs are no 3 for each tensor");
}

TEST(Features, ExtractorAndBinarizer) {
  ModelBuilder m;
  m.input("x", {"3"}).constant("i", int64s({2, 0}));
  m.node("ArrayFeatureExtractor", {"x", "i"}, {"a"}).domain("ai.onnx.ml");
  m.node("Binarizer", {"x"}, {"b"}).domain("ai.onnx.ml").real("threshold", 1);
  m.output("a").output("b");
  const std::vector<Tensor> results = m.run({floats({3}, {0.5f, 1, 7})});
  expect_values(results[0], {1, 2}, {7, 0.5});
  expect_values(results[1], {3}, {0, 0, 1});
}

}  // namespace
}  // namespace collage
