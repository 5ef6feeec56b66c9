// Pairs of groups of weights: nothing is lost, and no sum leaves 16 bits.
#include "backend/native/integers/quad_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

namespace collage::native {
namespace {

using Group = std::vector<int8_t>;

/// The weights of one vector of columns and pair.
Group group_of(const Tensor& weights, int64_t vector, int64_t pair) {
  const Shape& shape = weights.shape();
  const int64_t size = shape[2] * shape[3];
  const int8_t* from = weights.data<int8_t>() + (vector * shape[1] + pair) * size;
  return {from, from + size};
}

/// How many pairs there are, after a look at all of them.
int64_t checked_pairs(const Tensor& columns, int64_t lanes) {
  const QuadPairs pairs = pair_quads(columns, lanes);
  const Shape& shape = columns.shape();
  const int64_t panels = shape[0], groups = shape[1], vectors = shape[2] / lanes;
  const int64_t count = pairs.terms.shape()[1];
  EXPECT_EQ(pairs.terms.shape(), (Shape{panels, count, 2}));
  EXPECT_EQ(pairs.first.shape(), (Shape{panels * vectors, count, lanes, 4}));
  EXPECT_EQ(pairs.second.shape(), pairs.first.shape());
  for (int64_t vector = 0; vector < panels * vectors; ++vector) {
    // What multiplies each group of rows, all pairs together.
    std::map<int32_t, std::vector<int>> sums;
    for (int64_t pair = 0; pair < count; ++pair) {
      const std::array<Group, 2> both = {group_of(pairs.first, vector, pair),
                                         group_of(pairs.second, vector, pair)};
      for (size_t half = 0; half < 2; ++half) {
        const int32_t* terms = pairs.terms.data<int32_t>();
        auto& sum = sums[terms[(vector / vectors * count + pair) * 2 + static_cast<int>(half)]];
        sum.resize(both[half].size());
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += both[half][i];
      }
      for (size_t i = 0; i < both[0].size(); i += 2) {
        int positive = 0, negative = 0;
        for (const Group& group : both)
          for (const int weight : {group[i], group[i + 1]})
            (weight > 0 ? positive : negative) += weight;
        EXPECT_LE(positive * 255, 32767);
        EXPECT_GE(negative * 255, -32768);
      }
    }
    for (int64_t group = 0; group < groups; ++group) {
      const int8_t* from =
          columns.data<int8_t>() +
          ((vector / vectors * groups + group) * shape[2] + vector % vectors * lanes) * 4;
      const std::vector<int> expected(from, from + lanes * 4);
      EXPECT_EQ(sums[static_cast<int32_t>(group * 4)], expected) << vector << " " << group;
    }
  }
  return count;
}

Tensor columns_of(const Shape& shape, const std::function<int()>& weight) {
  Tensor columns = Tensor::empty(DType::kInt8, shape);
  for (int64_t i = 0; i < columns.size(); ++i)
    columns.data<int8_t>()[i] = static_cast<int8_t>(weight());
  return columns;
}

TEST(QuadPairs, HoldAllGroups) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 18);
  const auto bell = [&] { return static_cast<int>(std::clamp(normal(random), -64.0f, 64.0f)); };
  EXPECT_EQ(checked_pairs(columns_of({3, 64, 16, 4}, bell), 8), 32) << "as trained weights are";
  EXPECT_EQ(checked_pairs(columns_of({2, 15, 8, 4}, bell), 8), 8) << "an odd number";
  const auto any = [&] { return static_cast<int>(random() % 129) - 64; };
  for (int groups = 1; groups < 20; ++groups) {
    const int64_t pairs = checked_pairs(columns_of({2, groups, 8, 4}, any), 8);
    EXPECT_GE(pairs, (groups + 1) / 2);
    EXPECT_LE(pairs, groups);
  }
  EXPECT_EQ(checked_pairs(columns_of({1, 6, 16, 4}, [] { return 64; }), 8), 6) << "none fits";
  EXPECT_EQ(checked_pairs(columns_of({1, 6, 16, 4}, [] { return 32; }), 16), 3) << "all just fit";
}

/// What is left over takes the places of partners that others can have.
TEST(QuadPairs, ExchangePartners) {
  // 0 and 1 fit, which comes first, and then 2 and 3 do not; 0 and 2, and 1 and 3, do as well.
  Tensor columns = Tensor::zeros(DType::kInt8, {1, 4, 8, 4});
  const auto set = [&](int64_t group, int64_t lane, int value) {
    for (int64_t i = 0; i < 2; ++i)
      columns.data<int8_t>()[(group * 8 + lane) * 4 + i] = static_cast<int8_t>(value);
  };
  set(2, 0, 64), set(3, 0, 64);
  set(0, 1, 64), set(3, 1, 64);
  set(1, 2, 64), set(2, 2, 64);
  EXPECT_EQ(checked_pairs(columns, 8), 2);
}

}  // namespace
}  // namespace collage::native
