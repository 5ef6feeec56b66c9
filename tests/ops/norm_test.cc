// Softmax and normalisations: values by hand, defining properties, and compositions of simpler
// operators.
#include <cmath>

#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

// Mean and variance of a row.
std::pair<double, double> moments(const float* x, int64_t count, int64_t stride = 1) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < count; ++i) mean += static_cast<double>(x[i * stride]);
  mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i)
    variance += std::pow(static_cast<double>(x[i * stride]) - mean, 2);
  return {mean, variance / static_cast<double>(count)};
}

TEST(SoftmaxTest, KnownValuesAndLargeInputs) {
  Tensor y = run("nn.softmax", {floats({1, 3}, {0, std::log(2.0f), std::log(5.0f)})});
  EXPECT_THAT(y.values<float>(), ElementsAre(FloatNear(0.125f, 1e-7f), FloatNear(0.25f, 1e-7f),
                                             FloatNear(0.625f, 1e-7f)));
  EXPECT_THAT(run("nn.softmax", {floats({2}, {10000, 10000})}).values<float>(),
              ElementsAre(0.5, 0.5));
  EXPECT_THAT(run("nn.softmax", {floats({2}, {0, -INFINITY})}).values<float>(), ElementsAre(1, 0));
  EXPECT_THAT(run("nn.log_softmax", {floats({2}, {0, -1000})}).values<float>(),
              ElementsAre(0, -1000));
}

TEST(SoftmaxTest, SumsToOneAlongItsAxisAndLogIsItsLogarithm) {
  Tensor x = random({3, 5, 7}, 1, {-4, 4});
  for (int64_t axis : {0, 1, 2, -1}) {
    Tensor y = run("nn.softmax", {x}, {{"axis", axis}});
    Tensor log_y = run("nn.log_softmax", {x}, {{"axis", axis}});
    Tensor sums = run("sum", {y}, {{"axis", Ints{axis}}});
    for (float sum : sums.values<float>()) EXPECT_NEAR(sum, 1, 1e-6);
    for (int64_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(std::log(y.data<float>()[i]), log_y.data<float>()[i], 1e-5);
  }
}

TEST(NormTest, LayerNormCentresAndScales) {
  Tensor x = random({4, 3, 5}, 1, {2, 9});
  Tensor gamma = random({3, 5}, 2), beta = random({3, 5}, 3);
  Tensor y = run("nn.layer_norm", {x, gamma, beta}, {{"axis", int64_t{1}}, {"epsilon", 0.25}});
  for (int64_t row = 0; row < 4; ++row) {
    auto [mean, variance] = moments(x.data<float>() + row * 15, 15);
    for (int64_t i = 0; i < 15; ++i)
      EXPECT_NEAR(y.data<float>()[row * 15 + i],
                  (x.data<float>()[row * 15 + i] - mean) / std::sqrt(variance + 0.25) *
                          gamma.data<float>()[i] +
                      beta.data<float>()[i],
                  1e-6);
  }
}

TEST(NormTest, LayerNormOfLargeOffsetKeepsItsDigits) {
  Tensor x = floats({1, 4}, {4096, 4097, 4098, 4099}), one = floats({4}, {1, 1, 1, 1});
  Tensor y = run("nn.layer_norm", {x, one, floats({4}, {0, 0, 0, 0})}, {{"epsilon", 0.0}});
  EXPECT_NEAR(y.data<float>()[0], -1.3416407864998738, 1e-6);
}

TEST(NormTest, RmsNorm) {
  Tensor y = run("nn.rms_norm", {floats({1, 2}, {3, 4}), floats({2}, {1, 2})}, {{"epsilon", 0.0}});
  EXPECT_NEAR(y.data<float>()[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y.data<float>()[1], 8 / std::sqrt(12.5), 1e-6);
}

TEST(NormTest, InstanceAndGroupNorm) {
  Tensor x = random({2, 6, 4, 3}, 1), gamma = random({6}, 2), beta = random({6}, 3);
  for (int64_t groups : {1, 2, 3, 6}) {
    Tensor y = run("nn.group_norm", {x, gamma, beta}, {{"num_groups", groups}});
    const int64_t count = 6 / groups * 12;
    for (int64_t i = 0; i < x.size(); ++i) {
      auto [mean, variance] = moments(x.data<float>() + i / count * count, count);
      const int64_t c = i / 12 % 6;
      ASSERT_NEAR(
          y.data<float>()[i],
          (x.data<float>()[i] - mean) / std::sqrt(variance + 1e-5) * gamma.data<float>()[c] +
              beta.data<float>()[c],
          1e-5);
    }
    if (groups != 6) continue;
    EXPECT_EQ(floats_of(y), floats_of(run("nn.instance_norm", {x, gamma, beta})));
  }
}

TEST(NormTest, BatchNormUsesGivenStatistics) {
  std::vector<Tensor> y =
      run_all("nn.batch_norm",
              {floats({1, 2, 2}, {1, 2, 3, 4}), floats({2}, {2, 3}), floats({2}, {10, 20}),
               floats({2}, {1, 2}), floats({2}, {4, 0.25})},
              {{"epsilon", 0.0}});
  EXPECT_THAT(y[0].values<float>(), ElementsAre(10, 11, 26, 32));
  EXPECT_THAT(y[1].values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(y[2].values<float>(), ElementsAre(4, 0.25));
}

TEST(NormTest, LrnSumsNeighbouringChannels) {
  Tensor x = floats({1, 4, 1}, {1, 2, 3, 4});
  auto lrn = [&](int64_t size) {
    return run(
        "nn.lrn", {x},
        {{"size", size}, {"alpha", static_cast<double>(size)}, {"beta", 1.0}, {"bias", 1.0}});
  };
  expect_near(lrn(3), {1 / 6.0, 2 / 15.0, 3 / 30.0, 4 / 26.0});
  // Of an even size the longer side is after the channel.
  expect_near(lrn(2), {1 / 6.0, 2 / 14.0, 3 / 26.0, 4 / 17.0});
}

TEST(NormTest, L2Normalize) {
  Tensor y =
      run("nn.l2_normalize", {floats({2, 2}, {3, 4, 0, 0})}, {{"eps", 1e-12}, {"axis", Ints{1}}});
  expect_near(y, {0.6, 0.8, 0, 0});
}

}  // namespace
}  // namespace collage
