// Figures from blocks of samples: which blocks count, what they say together, and how surely.
#include "measure/blocks.h"

#include <gmock/gmock.h>

#include <random>

#include "base/json.h"
#include "measure/task.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

Block steady(double median) { return {median, 0.99 * median, 1.01 * median, 40}; }
Block disturbed(double median) {
  Block block = steady(median);
  block.disturbed = true;
  return block;
}

TEST(Blocks, AreDisturbedWhereATenthIsFarAboveAnother) {
  EXPECT_FALSE(block_of({1, 1.01, 1.02, 1.1, 1.2}).disturbed);
  EXPECT_TRUE(block_of({1, 1.01, 1.02, 1.6, 1.7}).disturbed);
}

TEST(Blocks, ThoseThatAgreeMakeTheFigure) {
  const Measured figure = of_blocks({{0.9, 0.8, 1.0, 10}, {0.94, 0.82, 1.06, 30}});
  EXPECT_DOUBLE_EQ(figure.median, 0.92);
  EXPECT_DOUBLE_EQ(figure.p10, 0.81);
  EXPECT_DOUBLE_EQ(figure.p90, 1.03);
  EXPECT_EQ(figure.samples, 40);
}

TEST(Blocks, WhatWasSlowedCountsAsLittleAsWhatWasSeenToBeDisturbed) {
  EXPECT_EQ(of_blocks({steady(1.2), steady(1)}).median, 1);
  EXPECT_EQ(of_blocks({steady(1), steady(1.2)}).median, 1);
  EXPECT_EQ(of_blocks({disturbed(0.95), steady(1)}).median, 1);
  EXPECT_EQ(of_blocks({disturbed(1.5), disturbed(1)}).median, 1) << "better than nothing";
  EXPECT_EQ(of_blocks({steady(1), disturbed(0.5)}).median, 0.5) << "slowed throughout, unseen";
  const std::vector<Block> blocks = {steady(1.3), disturbed(1), steady(1), steady(1.05)};
  EXPECT_THAT(undisturbed(blocks), ElementsAre(2, 3));
}

TEST(Blocks, MoreOfThemMakeAFigureSurer) {
  const Measured one = of_blocks({steady(1)});
  const Measured two = of_blocks({steady(1), steady(1.01)});
  const Measured apart = of_blocks({steady(1), steady(1.09)});
  EXPECT_LT(standard_error(two), standard_error(one));
  EXPECT_GT(standard_error(apart), standard_error(two));
  EXPECT_LT(standard_error(apart), 0.1);
}

TEST(Blocks, TheIntervalHoldsTheTruthNearlyAlways) {
  // As on a machine whose speed changes by 3% from one moment to the next.
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  int held = 0;
  constexpr int kTimes = 400;
  for (int time = 0; time < kTimes; ++time) {
    std::vector<Block> blocks;
    for (int b = 0; b < 2; ++b) {
      const double moment = 1 + 0.03 * normal(random);
      std::vector<double> samples;
      for (int i = 0; i < 40; ++i) samples.push_back(moment * (1 + 0.02 * normal(random)));
      blocks.push_back(block_of(samples));
    }
    const Interval interval = likely_interval(of_blocks(blocks));
    held += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GT(held, 0.92 * kTimes);
  EXPECT_LT(held, kTimes);
}

TEST(Blocks, WhatWasDisturbedMayBeAsFastAsItsFastest) {
  EXPECT_GT(likely_interval(of_blocks({steady(1)})).low, 0.93);
  EXPECT_LT(likely_interval(of_blocks({disturbed(1)})).low, 0.85) << "slowed throughout";
  const Measured split = of_blocks({block_of({0.5, 0.5, 1, 1, 1, 1, 1})});
  EXPECT_LE(likely_interval(split).low, 0.5);
}

// Kernels of some 90 ns give the same few ticks of the clock again and again.
TEST(Blocks, OfEqualSamplesAreReadAgain) {
  std::mt19937 random(7);
  for (int time = 0; time < 2000; ++time) {
    std::vector<Block> blocks(1 + random() % 2);
    for (Block& block : blocks) {
      std::vector<double> samples(1 + random() % 60);
      for (double& sample : samples) sample = 1e-9 * (80 + random() % 3 * 10);
      block = block_of(samples);
    }
    for (const Measured& figure : {of_blocks({blocks[0]}), of_blocks(blocks)}) {
      EXPECT_LE(figure.p10, figure.median);
      EXPECT_LE(figure.median, figure.p90);
      const Result<Cost> read = cost_from_json(parse_json(json_text(to_json(Cost(figure)))));
      ASSERT_TRUE(read.ok()) << read.status().to_string();
    }
  }
}

TEST(Blocks, AreKeptAsJson) {
  const Cost cost = of_blocks({steady(1), disturbed(2), steady(1.02)});
  const Result<Cost> read = cost_from_json(to_json(cost));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  ASSERT_NE(measured(*read), nullptr);
  EXPECT_EQ(measured(*read)->median, measured(cost)->median);
  EXPECT_EQ(measured(*read)->blocks.size(), 3u);
  EXPECT_TRUE(measured(*read)->blocks[1].disturbed);
  EXPECT_FALSE(cost_from_json({{"blocks", nlohmann::json::array()}}).ok());
}

}  // namespace
}  // namespace collage
