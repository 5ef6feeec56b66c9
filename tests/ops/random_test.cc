// Random numbers: their distributions, and that they depend on the key and the position alone.
#include <cmath>
#include <set>

#include "op_test.h"
#include "ops/counter_random.h"

namespace collage {
namespace {

constexpr int64_t kMany = 1 << 20;

Tensor draw(const char* op, int64_t key, Shape shape, Attrs attrs = {}) {
  attrs.set("shape", std::move(shape));
  return run(op, {ints({}, {key})}, std::move(attrs));
}

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0, least = INFINITY, most = -INFINITY;
};

Moments moments_of(const Tensor& tensor) {
  Moments m;
  const auto n = static_cast<double>(tensor.size());
  for (float x : tensor.values<float>()) {
    m.mean += static_cast<double>(x) / n;
    m.least = std::min(m.least, static_cast<double>(x));
    m.most = std::max(m.most, static_cast<double>(x));
  }
  for (float x : tensor.values<float>()) {
    const double d = static_cast<double>(x) - m.mean;
    m.variance += d * d / n;
    m.skew += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skew /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

// Of neighbours at a distance.
double correlation(const Tensor& tensor, int64_t distance) {
  const Moments m = moments_of(tensor);
  const float* x = tensor.data<float>();
  double sum = 0;
  for (int64_t i = 0; i + distance < tensor.size(); ++i)
    sum += (static_cast<double>(x[i]) - m.mean) * (static_cast<double>(x[i + distance]) - m.mean);
  return sum / m.variance / static_cast<double>(tensor.size() - distance);
}

TEST(RandomTest, UniformNumbersFillTheirRange) {
  const Moments m = moments_of(draw("random.uniform", 7, {kMany}, {{"low", -1.0}, {"high", 3.0}}));
  EXPECT_NEAR(m.mean, 1, 0.005);
  EXPECT_NEAR(m.variance, 16.0 / 12, 0.005);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.01);
  EXPECT_GE(m.least, -1);
  EXPECT_LT(m.least, -0.9999);
  EXPECT_LE(m.most, 3);
  EXPECT_GT(m.most, 2.9999);
  EXPECT_LT(moments_of(draw("random.uniform", 7, {kMany})).most, 1);
}

TEST(RandomTest, NormalNumbersHaveTheirMoments) {
  const Moments m =
      moments_of(draw("random.normal", 3, {1 << 10, 1 << 10}, {{"mean", 2.0}, {"scale", 0.5}}));
  EXPECT_NEAR(m.mean, 2, 0.003);
  EXPECT_NEAR(m.variance, 0.25, 0.002);
  EXPECT_NEAR(m.skew, 0, 0.02);
  EXPECT_NEAR(m.kurtosis, 3, 0.04);
  EXPECT_GT(m.most, 2 + 0.5 * 4);
  EXPECT_LT(m.most, 2 + 0.5 * 7);
}

TEST(RandomTest, NeighboursAreUnrelated) {
  for (const char* op : {"random.uniform", "random.normal"})
    for (int64_t distance : {1, 2, 3, 64}) {
      EXPECT_NEAR(correlation(draw(op, 5, {kMany}), distance), 0, 0.005) << op << distance;
    }
}

TEST(RandomTest, StreamsOfNeighbouringKeysShareNoNumbers) {
  std::set<uint64_t> seen;
  for (uint64_t key = 0; key < 50; ++key)
    for (uint64_t i = 0; i < 2000; ++i) seen.insert(RandomStream(key).bits(i));
  EXPECT_EQ(seen.size(), 50u * 2000u);
}

TEST(RandomTest, AnElementDependsOnKeyAndPositionAlone) {
  const std::vector<float> whole = floats_of(draw("random.normal", 9, {300, 100}));
  const std::vector<float> part = floats_of(draw("random.normal", 9, {10, 7}));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  EXPECT_EQ(floats_of(draw("random.normal", 9, {300, 100})), whole);
  EXPECT_NE(floats_of(draw("random.normal", 10, {300, 100})), whole);
}

TEST(RandomTest, OtherTypes) {
  const Tensor wide = draw("random.uniform", 1, {1000}, {{"dtype", DType::kFloat64}});
  const Tensor narrow = draw("random.uniform", 1, {1000}, {{"dtype", DType::kFloat16}});
  const Tensor plain = draw("random.uniform", 1, {1000});
  ASSERT_EQ(wide.dtype(), DType::kFloat64);
  ASSERT_EQ(narrow.dtype(), DType::kFloat16);
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_NEAR(wide.element_as_double(i), plain.element_as_double(i), 0x1p-24);
    EXPECT_NEAR(narrow.element_as_double(i), plain.element_as_double(i), 0x1p-12);
  }
  EXPECT_EQ(draw("random.normal", 1, {0, 3}).size(), 0);
}

}  // namespace
}  // namespace collage
