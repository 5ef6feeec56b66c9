// Convolutions, pools, products, normalisations and activations: which calls they become, and the
// options that the ONNX test suite does not try.
#include <cmath>

#include "frontend/onnx/model_builder.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

// The first call of that operator in the model.
TEST(Conv, BiasBecomesItsOwnCall) {
  ModelBuilder m;
  m.input("x", {"1", "3", "5", "5"}).constant("w", ramp({2, 3, 3, 3})).constant("b", ramp({2}));
  m.node("Conv", {"x", "w", "b"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.conv2d", "nn.bias_add"));
}

TEST(Conv, SamePaddingBecomesNumbers) {
  for (const bool upper : {true, false}) {
    ModelBuilder m;
    m.input("x", {"1", "1", "5", "6"}).constant("w", ramp({1, 1, 3, 3}));
    m.node("Conv", {"x", "w"}, {"y"})
        .text("auto_pad", upper ? "SAME_UPPER" : "SAME_LOWER")
        .ints("strides", {2, 2});
    m.output("y");
    Result<ImportedModel> model = m.import();
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    const CallNode* conv = find_call(*model, "nn.conv2d");
    ASSERT_NE(conv, nullptr);
    // 5 wide: 2 in total, 6 wide: 1 in total, the odd one after (upper) or before (lower).
    EXPECT_EQ(conv->attrs.ints("padding"), upper ? (Ints{1, 0, 1, 1}) : (Ints{1, 1, 1, 0}));
    EXPECT_EQ(conv->type().tensor().shape, (Shape{1, 1, 3, 3}));
  }
}

TEST(Conv, SamePaddingReachesAsFarAsDilatedKernels) {
  ModelBuilder m;
  m.input("x", {"1", "1", "7", "7"}).constant("w", ramp({1, 1, 3, 3}));
  m.node("Conv", {"x", "w"}, {"y"}).text("auto_pad", "SAME_UPPER").ints("dilations", {2, 1});
  m.output("y");
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const CallNode* conv = find_call(*model, "nn.conv2d");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->attrs.ints("padding"), (Ints{2, 1, 2, 1}));
  EXPECT_EQ(conv->type().tensor().shape, (Shape{1, 1, 7, 7}));
}

TEST(Conv, OneAndThreeDimensions) {
  ModelBuilder one;
  one.input("x", {"1", "2", "7"}).constant("w", ramp({4, 2, 3}));
  one.node("Conv", {"x", "w"}, {"y"}).ints("dilations", {2});
  one.output("y");
  EXPECT_THAT(one.ops(), ElementsAre("nn.conv1d"));
  ModelBuilder four;
  four.input("x", {"1", "1", "2", "2", "2", "2"}).constant("w", ramp({1, 1, 1, 1, 1, 1}));
  four.node("Conv", {"x", "w"}, {"y"});
  four.output("y");
  expect_error(four.import(), ErrorCode::kUnsupported, "4 spatial dimensions");
}

TEST(Conv, KernelShapeMustBeTheWeights) {
  ModelBuilder m;
  m.input("x", {"1", "1", "5", "5"}).constant("w", ramp({1, 1, 3, 3}));
  m.node("Conv", {"x", "w"}, {"y"}).ints("kernel_shape", {5, 5});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "kernel_shape (5, 5) differs from the weight's");
}

TEST(ConvTranspose, OutputShapeLargerThanTheDataReaches) {
  ModelBuilder m;
  m.input("x", {"1", "1", "3", "3"}).constant("w", ramp({1, 1, 3, 3}));
  m.node("ConvTranspose", {"x", "w"}, {"y"}).ints("strides", {3, 2}).ints("output_shape", {10, 8});
  m.output("y");
  EXPECT_EQ(m.run({ramp({1, 1, 3, 3})})[0].shape(), (Shape{1, 1, 10, 8}));
}

TEST(Pool, AveragePoolCountsPaddingOnlyWhenAsked) {
  for (const bool counted : {false, true}) {
    ModelBuilder m;
    m.input("x", {"1", "1", "2", "2"});
    m.node("AveragePool", {"x"}, {"y"})
        .ints("kernel_shape", {2, 2})
        .ints("pads", {1, 1, 0, 0})
        .integer("count_include_pad", counted);
    m.output("y");
    const double c = counted ? 0.25 : 1.0;
    expect_values(m.run({floats({1, 1, 2, 2}, {1, 2, 3, 4})})[0], {1, 1, 2, 2},
                  {1 * c, 3 * (counted ? 0.25 : 0.5), 4 * (counted ? 0.25 : 0.5), 2.5});
  }
}

// The positions of the maxima of a plane, in as many planes as the data has.
std::vector<double> maxima(const Tensor& data, const std::function<void(NodeBuilder&)>& set) {
  ModelBuilder m;
  std::vector<std::string> dims;
  for (int64_t extent : data.shape()) dims.push_back(std::to_string(extent));
  m.input("x", dims);
  NodeBuilder node = m.node("MaxPool", {"x"}, {"y", "at"});
  set(node);
  m.output("y").output("at");
  return values_of(m.run({data})[1]);
}

TEST(Pool, PositionsOfMaximaCountThroughAllPlanes) {
  const Tensor data = floats({1, 2, 2, 3}, {1, 5, 2, 4, 3, 6, 9, 9, 9, 9, 9, 9});
  const auto two = [](NodeBuilder& n) { n.ints("kernel_shape", {2, 2}); };
  EXPECT_THAT(maxima(data, two), ElementsAre(1, 5, 6, 7));  // the first of equal ones
  EXPECT_THAT(maxima(data,
                     [&](NodeBuilder& n) {
                       two(n);
                       n.integer("storage_order", 1);
                     }),
              ElementsAre(2, 5, 6, 8));
}

TEST(Pool, PositionsOfMaximaAreNeverInThePadding) {
  const float least = -INFINITY;
  EXPECT_THAT(maxima(floats({1, 1, 4}, {least, least, 1, 0}),
                     [](NodeBuilder& n) {
                       n.ints("kernel_shape", {3}).ints("pads", {2, 1}).ints("dilations", {1});
                     }),
              ElementsAre(0, 0, 2, 2, 2));
  EXPECT_THAT(maxima(floats({1, 1, 5}, {3, 1, 2, 0, 5}),
                     [](NodeBuilder& n) {
                       n.ints("kernel_shape", {2}).ints("strides", {2}).integer("ceil_mode", 1);
                     }),
              ElementsAre(0, 2, 4));
}

TEST(Pool, MaxUnpoolPutsMaximaBack) {
  ModelBuilder m;
  m.input("x", {"1", "1", "2", "4"});
  m.node("MaxPool", {"x"}, {"y", "at"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  m.node("MaxUnpool", {"y", "at"}, {"z"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  m.output("z");
  expect_values(m.run({floats({1, 1, 2, 4}, {1, 2, 8, 3, 4, 3, 5, 6})})[0], {1, 1, 2, 4},
                {0, 0, 8, 0, 4, 0, 0, 0});
}

TEST(Pool, LpPoolIsANormOfTheWindow) {
  ModelBuilder m(18);
  m.input("x", {"1", "1", "4"});
  m.node("LpPool", {"x"}, {"y"}).ints("kernel_shape", {2}).integer("p", 2);
  m.output("y");
  expect_values(m.run({floats({1, 1, 4}, {3, -4, 0, 5})})[0], {1, 1, 3}, {5, 4, 5});
}

TEST(Gemm, TransposedWeightIsDenseWithBias) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).constant("w", ramp({4, 3})).constant("c", ramp({4}));
  m.node("Gemm", {"x", "w", "c"}, {"y"}).integer("transB", 1);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.dense", "nn.bias_add"));
}

TEST(Gemm, FactorsAndTransposes) {
  ModelBuilder m;
  m.input("a", {"2", "1"}).input("b", {"2", "2"}).constant("c", floats({1, 1}, {10}));
  m.node("Gemm", {"a", "b", "c"}, {"y"}).integer("transA", 1).real("alpha", 2).real("beta", 0.5);
  m.output("y");
  // [1 2]·[[1 2][3 4]] = [7 10]
  expect_values(m.run({floats({2, 1}, {1, 2}), floats({2, 2}, {1, 2, 3, 4})})[0], {1, 2}, {19, 25});
}

TEST(Gemm, BiasThatDoesNotBroadcast) {
  ModelBuilder m;
  m.input("a", {"2", "2"}).input("b", {"2", "2"}).constant("c", ramp({3, 1, 1}));
  m.node("Gemm", {"a", "b", "c"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "C of shape (3, 1, 1) does not broadcast");
}

TEST(MatMul, Vectors) {
  struct Case {
    Shape a, b, y;
    std::vector<double> values;
  };
  for (const Case& c : std::vector<Case>{{{2}, {2}, {}, {1}},
                                         {{2}, {2, 2}, {2}, {2, 3}},
                                         {{2, 2}, {2}, {2}, {1, 3}},
                                         {{2}, {2, 2, 1}, {2, 1}, {1, 3}}}) {
    ModelBuilder m;
    m.constant("a", ramp(c.a)).constant("b", ramp(c.b));
    m.node("MatMul", {"a", "b"}, {"y"});
    m.output("y");
    expect_values(m.run({})[0], c.y, c.values);
  }
}

TEST(BatchNorm, TrainingTakesTheDatasStatistics) {
  ModelBuilder m;
  m.input("x", {"2", "2", "1"}).constant("s", floats({2}, {1, 2})).constant("b", ramp({2}));
  m.constant("m", floats({2}, {0, 8})).constant("v", floats({2}, {1, 1}));
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "mean", "variance"})
      .integer("training_mode", 1)
      .real("momentum", 0.75)
      .real("epsilon", 0);
  m.output("y").output("mean").output("variance");
  const std::vector<Tensor> results = m.run({floats({2, 2, 1}, {1, 10, 3, 20})});
  ASSERT_EQ(results.size(), 3u);
  expect_values(results[0], {2, 2, 1}, {-1, -1, 1, 3});
  expect_values(results[1], {2}, {0.5, 9.75});
  expect_values(results[2], {2}, {1, 7});
}

TEST(BatchNorm, OldWaysOfTrainingAreUnsupported) {
  ModelBuilder m(6);
  m.input("x", {"1", "2", "3"});
  for (const char* name : {"s", "b", "m", "v"}) m.constant(name, ramp({2}));
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "mean"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported, "training (is_test = 0)");
}

TEST(LayerNorm, WithoutBiasAndWithStatistics) {
  ModelBuilder m;
  m.input("x", {"1", "4"}).constant("s", floats({4}, {1, 1, 1, 2}));
  m.node("LayerNormalization", {"x", "s"}, {"y", "mean", "scale"}).real("epsilon", 0);
  m.output("y").output("mean").output("scale");
  std::vector<Tensor> results = m.run({floats({1, 4}, {1, 1, 3, 3})});
  ASSERT_GE(results.size(), 3u);
  expect_values(results[0], {1, 4}, {-1, -1, 1, 2});
  expect_values(results[1], {1, 1}, {2});
  expect_values(results[2], {1, 1}, {1});
}

TEST(GroupNorm, ScalePerGroupBefore21) {
  for (const int64_t opset : {18, 21}) {
    ModelBuilder m(opset);
    const int64_t count = opset < 21 ? 2 : 4;
    m.input("x", {"1", "4", "1"});
    m.constant("s", opset < 21 ? floats({count}, {1, 10}) : floats({count}, {1, 1, 10, 10}));
    m.constant("b", Tensor::zeros(DType::kFloat32, {count}));
    m.node("GroupNormalization", {"x", "s", "b"}, {"y"})
        .integer("num_groups", 2)
        .real("epsilon", 0);
    m.output("y");
    expect_values(m.run({floats({1, 4, 1}, {1, 3, 2, 6})})[0], {1, 4, 1}, {-1, 1, -10, 10});
  }
}

TEST(LpNormalization, ZeroStaysZero) {
  ModelBuilder m;
  m.input("x", {"2", "2"});
  m.node("LpNormalization", {"x"}, {"y"}).integer("p", 2);
  m.output("y");
  expect_values(m.run({floats({2, 2}, {3, 4, 0, 0})})[0], {2, 2}, {0.6, 0.8, 0, 0});
}

TEST(Softmax, FlattensBefore13) {
  // Over dimensions 1 and 2 together, then over the last alone.
  for (const int64_t opset : {11, 13}) {
    ModelBuilder m(opset);
    m.input("x", {"1", "2", "2"});
    m.node("Softmax", {"x"}, {"y"});
    m.output("y");
    const double value = opset < 13 ? 0.25 : 0.5;
    expect_values(m.run({Tensor::zeros(DType::kFloat32, {1, 2, 2})})[0], {1, 2, 2},
                  {value, value, value, value});
  }
}

TEST(Softmax, AxisAtTheEndBefore13IsEachElementAlone) {
  ModelBuilder m(11);
  m.input("x", {"2", "2"});
  m.node("Softmax", {"x"}, {"y"}).integer("axis", 2);
  m.output("y");
  expect_values(m.run({ramp({2, 2})})[0], {2, 2}, {1, 1, 1, 1});
}

TEST(Clip, AttributesInputsAndOpenSides) {
  ModelBuilder old(6);
  old.input("x", {"3"});
  old.node("Clip", {"x"}, {"y"}).real("min", 0).real("max", 6);
  old.output("y");
  EXPECT_THAT(old.ops(), ElementsAre("clip"));
  expect_values(old.run({floats({3}, {-1, 3, 9})})[0], {3}, {0, 3, 6});
  ModelBuilder open;
  open.input("x", {"3"}).constant("max", Tensor::scalar<float>(6));
  open.node("Clip", {"x", "", "max"}, {"y"});
  open.output("y");
  expect_values(open.run({floats({3}, {-1, 3, 9})})[0], {3}, {-1, 3, 6});
  ModelBuilder computed;
  computed.input("x", {"3"}).input("min", {}).input("max", {});
  computed.node("Clip", {"x", "min", "max"}, {"y"});
  computed.output("y");
  expect_values(computed.run({floats({3}, {-1, 3, 9}), Tensor::scalar<float>(4),
                              Tensor::scalar<float>(2)})[0],
                {3}, {2, 2, 2});  // the upper bound wins
}

TEST(PRelu, SlopePerChannelAndOtherwise) {
  ModelBuilder channel;
  channel.input("x", {"1", "2", "2"}).constant("a", floats({2, 1}, {0.5, 2}));
  channel.node("PRelu", {"x", "a"}, {"y"});
  channel.output("y");
  EXPECT_THAT(channel.ops(), ElementsAre("nn.prelu"));
  const Tensor x = floats({1, 2, 2}, {-1, 1, -1, 1});
  expect_values(channel.run({x})[0], {1, 2, 2}, {-0.5, 1, -2, 1});
  ModelBuilder last;
  last.input("x", {"1", "2", "2"}).constant("a", floats({2}, {0.5, 2}));
  last.node("PRelu", {"x", "a"}, {"y"});
  last.output("y");
  expect_values(last.run({x})[0], {1, 2, 2}, {-0.5, 1, -0.5, 1});
}

TEST(Activations, NewerOnes) {
  ModelBuilder m(28);
  m.input("x", {"2"});
  m.node("Swish", {"x"}, {"a"});
  m.node("Swish", {"x"}, {"b"}).real("alpha", 0);  // x/2
  m.node("SwiGLU", {"x", "x"}, {"c"});
  m.output("a").output("b").output("c");
  EXPECT_THAT(m.ops(),
              ElementsAre("nn.silu", "multiply", "sigmoid", "multiply", "nn.silu", "multiply"));
  expect_values(m.run({floats({2}, {0, 2})})[1], {2}, {0, 1});
}

TEST(Attention, IsOneCallWithOneMask) {
  ModelBuilder m(24);
  m.input("q", {"1", "2", "3", "4"})
      .input("k", {"1", "2", "3", "4"})
      .input("v", {"1", "2", "3", "4"});
  m.node("Attention", {"q", "k", "v"}, {"y"}).integer("is_causal", 1);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.attention"));
}

}  // namespace
}  // namespace collage
