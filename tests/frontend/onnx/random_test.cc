// Random operators: they draw the same numbers in every run of the same number, others in every
// node and in other runs, and as many of each value as they should.
#include <cmath>

#include "frontend/onnx/model_builder.h"
#include "ops/random_inputs.h"
#include "runtime/run_number.h"

namespace collage {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

double mean_of(const Tensor& tensor) {
  double sum = 0;
  for (double value : values_of(tensor)) sum += value;
  return sum / static_cast<double>(tensor.size());
}

TEST(Random, NodesWithoutASeedDrawTheirOwnNumbers) {
  ModelBuilder m;
  m.node("RandomUniform", {}, {"a"}).ints("shape", {4});
  m.node("RandomUniform", {}, {"b"}).ints("shape", {4});
  m.output("a").output("b");
  const std::vector<Tensor> first = m.run({}), second = m.run({});
  EXPECT_NE(values_of(first[0]), values_of(first[1]));
  EXPECT_EQ(values_of(first[0]), values_of(second[0]));
  EXPECT_EQ(values_of(first[1]), values_of(second[1]));
}

TEST(Random, SeedsDecide) {
  ModelBuilder m;
  for (const auto& [name, seed] : {std::pair{"a", 1.0f}, {"b", 1.0f}, {"c", 1.5f}}) {
    m.node("RandomNormal", {}, {name}).ints("shape", {8}).real("seed", seed);
    m.output(name);
  }
  const std::vector<Tensor> results = m.run({});
  EXPECT_EQ(values_of(results[0]), values_of(results[1]));
  EXPECT_NE(values_of(results[0]), values_of(results[2]));
}

TEST(Random, NumbersLikeATensor) {
  ModelBuilder m;
  m.input("x", {"100", "300"}, onnx::TensorProto::DOUBLE);
  m.node("RandomNormalLike", {"x"}, {"n"}).real("mean", 3).real("scale", 2);
  m.node("RandomUniformLike", {"x"}, {"u"}).real("low", -1).integer("dtype", 1);
  m.output("n").output("u");
  const std::vector<Tensor> results = m.run({Tensor::zeros(DType::kFloat64, {100, 300})});
  EXPECT_EQ(results[0].dtype(), DType::kFloat64);
  EXPECT_EQ(results[1].dtype(), DType::kFloat32);
  EXPECT_EQ(results[1].shape(), (Shape{100, 300}));
  EXPECT_NEAR(mean_of(results[0]), 3, 0.05);
  EXPECT_NEAR(mean_of(results[1]), 0, 0.02);
}

TEST(Random, NumbersAreDrawnInEveryRun) {
  ModelBuilder m;
  m.input("x", {"1"});
  m.node("RandomUniform", {}, {"r"}).ints("shape", {4});
  m.node("Add", {"x", "r"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("random.run", "random.uniform", "add"));
  std::vector<std::vector<double>> runs;
  for (const uint64_t number : {0, 1, 2, 1}) {
    const RunNumber run(number);
    runs.push_back(values_of(m.run({floats({1}, {0})})[0]));
  }
  EXPECT_NE(runs[0], runs[1]);
  EXPECT_NE(runs[1], runs[2]);
  EXPECT_NE(runs[0], runs[2]);
  EXPECT_EQ(runs[1], runs[3]);
}

TEST(Random, BernoulliDrawsOnesAsOftenAsAsked) {
  ModelBuilder m;
  m.input("x", {"4", "20000"});
  m.node("Bernoulli", {"x"}, {"y"}).integer("dtype", onnx::TensorProto::INT32);
  m.output("y");
  Tensor chances = Tensor::empty(DType::kFloat32, {4, 20000});
  for (int64_t i = 0; i < chances.size(); ++i) {
    constexpr float kChances[] = {0, 0.3f, 0.8f, 1};
    chances.data<float>()[i] = kChances[i / 20000];
  }
  const Tensor drawn = m.run({chances})[0];
  ASSERT_EQ(drawn.dtype(), DType::kInt32);
  double counts[4] = {};
  for (int64_t i = 0; i < drawn.size(); ++i) counts[i / 20000] += drawn.element_as_double(i);
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(counts[1], 6000, 300);
  EXPECT_NEAR(counts[2], 16000, 300);
  EXPECT_EQ(counts[3], 20000);
}

TEST(Random, MultinomialDrawsClassesByTheirChances) {
  ModelBuilder m;
  m.input("x", {"2", "4"});
  m.node("Multinomial", {"x"}, {"y"}).integer("sample_size", 40000).integer("dtype", 7);
  m.output("y");
  const float never = -INFINITY;
  const Tensor drawn = m.run({floats({2, 4}, {std::log(1.0f), std::log(2.0f), never, std::log(5.0f),
                                              never, never, 100, never})})[0];
  ASSERT_EQ(drawn.dtype(), DType::kInt64);
  ASSERT_EQ(drawn.shape(), (Shape{2, 40000}));
  double counts[4] = {};
  for (int64_t i = 0; i < 40000; ++i) ++counts[drawn.data<int64_t>()[i]];
  EXPECT_NEAR(counts[0], 5000, 400);
  EXPECT_NEAR(counts[1], 10000, 400);
  EXPECT_EQ(counts[2], 0);
  EXPECT_NEAR(counts[3], 25000, 400);
  const std::vector<double> all = values_of(drawn);
  EXPECT_THAT(std::vector<double>(all.begin() + 40000, all.end()), Each(2));
}

struct Dropped {
  std::vector<double> values, kept;
};

// Dropout of ones; `training` and `ratio` are computed where they are inputs.
Dropped drop(float ratio, bool training, bool computed) {
  const Shape shape = {100, 500};
  ModelBuilder m;
  m.input("x", {"100", "500"});
  const Tensor ratio_value = Tensor::scalar<float>(ratio);
  const Tensor mode = Tensor::scalar<bool>(training);
  std::vector<Tensor> inputs = {Tensor::empty(DType::kFloat32, shape)};
  std::fill_n(inputs[0].data<float>(), inputs[0].size(), 1.0f);
  if (computed) {
    m.input("ratio", {}).input("mode", {}, onnx::TensorProto::BOOL);
    inputs.insert(inputs.end(), {ratio_value, mode});
  } else {
    m.constant("ratio", ratio_value).constant("mode", mode);
  }
  m.node("Dropout", {"x", "ratio", "mode"}, {"y", "kept"}).integer("seed", 5);
  m.output("y").output("kept");
  const std::vector<Tensor> results = m.run(inputs);
  return {values_of(results[0]), values_of(results[1])};
}

TEST(Random, DropoutDropsInTrainingAlone) {
  for (const bool computed : {false, true}) {
    const Dropped some = drop(0.75f, true, computed);
    int64_t kept = 0;
    for (size_t i = 0; i < some.values.size(); ++i) {
      EXPECT_EQ(some.values[i], some.kept[i] != 0 ? 4 : 0);
      kept += some.kept[i] != 0;
    }
    EXPECT_NEAR(static_cast<double>(kept), 12500, 400);
    EXPECT_THAT(drop(0.75f, false, computed).values, Each(1));
    EXPECT_THAT(drop(0.75f, false, computed).kept, Each(1));
    EXPECT_THAT(drop(0, true, computed).values, Each(1));
    EXPECT_THAT(drop(1, true, computed).values, Each(0));
    EXPECT_THAT(drop(1, true, computed).kept, Each(0));
  }
}

TEST(Random, DropoutOfInferenceLeavesNoCall) {
  ModelBuilder m;
  m.input("x", {"2"}).constant("ratio", Tensor::scalar<float>(0.5f));
  m.constant("mode", Tensor::scalar<bool>(false));
  m.node("Dropout", {"x", "ratio", "mode"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), IsEmpty());
}

TEST(Random, ShapesAndTypesThatAreNone) {
  ModelBuilder negative;
  negative.node("RandomNormal", {}, {"y"}).ints("shape", {2, -1});
  negative.output("y");
  expect_error(negative.import(), ErrorCode::kBadModel, "negative dimension in shape (2, -1)");
  ModelBuilder whole;
  whole.node("RandomUniform", {}, {"y"}).ints("shape", {2}).integer("dtype", 7);
  whole.output("y");
  expect_error(whole.import(), ErrorCode::kBadModel, "random numbers of type int64");
}

}  // namespace
}  // namespace collage
