// The interval of a speed-up over turns, and when it decides who is faster.
#include "report/speed_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace collage {
namespace {

using ::testing::HasSubstr;
using SpeedVerdict = SpeedUp::Verdict;

// Two programs on a machine whose pace changes from turn to turn by up to `pace`, and within a turn
// by up to `noise`: the second takes `ratio` times the first's time.
SpeedUp simulated(double ratio, double pace, double noise, size_t turns, unsigned seed) {
  std::mt19937 random(seed);
  auto draw = [&](double most) {
    return 1 + std::uniform_real_distribution<double>(-most, most)(random);
  };
  std::vector<double> own, other;
  for (size_t turn = 0; turn < turns; ++turn) {
    const double now = 1e-2 * draw(pace);
    own.push_back(now * draw(noise));
    other.push_back(now * ratio * draw(noise));
  }
  return speed_up(own, other);
}

TEST(SpeedUpOverTurns, IsTheMedianOfTheRatiosWithItsInterval) {
  const std::vector<double> own(9, 2.0), other = {2.2, 2.4, 2.6, 2.8, 3.0, 3.2, 3.4, 3.6, 38};
  const SpeedUp found = speed_up(own, other);
  EXPECT_DOUBLE_EQ(found.ratio, 1.5);
  EXPECT_EQ(found.turns, 9U);
  EXPECT_GE(found.interval.low, 1.1);
  EXPECT_LE(found.interval.high, 1.8) << "one disturbed turn decides nothing";
  EXPECT_EQ(found.verdict, SpeedVerdict::kFaster);
  EXPECT_EQ(speed_up(other, own).verdict, SpeedVerdict::kSlower);
}

TEST(SpeedUpOverTurns, APaceThatChangesBetweenTurnsDoesNotMatter) {
  const SpeedUp found = simulated(1.1, 0.5, 0.02, 12, 1);
  EXPECT_EQ(found.verdict, SpeedVerdict::kFaster);
  EXPECT_NEAR(found.ratio, 1.1, 0.03);
  EXPECT_LT(found.interval.high - found.interval.low, 0.06);
}

TEST(SpeedUpOverTurns, OneThatMovedTooMuchIsNotDecided) {
  const SpeedUp found = simulated(1.02, 0.1, 0.3, 12, 2);
  EXPECT_EQ(found.verdict, SpeedVerdict::kMoved);
  EXPECT_LE(found.interval.low, 1);
  EXPECT_GE(found.interval.high, 1);
  EXPECT_THAT(to_text(found), HasSubstr("not decided, the machine moved too much"));
}

TEST(SpeedUpOverTurns, AlikeIsWithinTwoPercent) {
  const SpeedUp found = simulated(1, 0.3, 0.005, 12, 3);
  EXPECT_EQ(found.verdict, SpeedVerdict::kAlike);
  EXPECT_THAT(to_text(found), HasSubstr("alike within 2%"));
}

TEST(SpeedUpOverTurns, FewTurnsDecideNothing) {
  for (size_t turns = 1; turns < 6; ++turns) {
    const SpeedUp found = speed_up(std::vector<double>(turns, 1), std::vector<double>(turns, 2));
    EXPECT_EQ(found.verdict, SpeedVerdict::kTooFewTurns) << turns;
    EXPECT_THAT(to_text(found), HasSubstr("6 turns are needed"));
  }
  EXPECT_EQ(speed_up(std::vector<double>(6, 1), std::vector<double>(6, 2)).verdict,
            SpeedVerdict::kFaster);
}

// Of many comparisons the share whose interval holds the truth is what the interval claims.
TEST(SpeedUpOverTurns, ItsIntervalHoldsTheTruthNineteenTimesInTwenty) {
  for (size_t turns : {6, 9, 10, 15, 30}) {
    int held = 0;
    constexpr int kComparisons = 2000;
    for (unsigned seed = 0; seed < kComparisons; ++seed) {
      const SpeedUp found = simulated(1.07, 0.3, 0.1, turns, seed);
      held += found.interval.low <= 1.07 && 1.07 <= found.interval.high ? 1 : 0;
    }
    EXPECT_GE(held, 0.92 * kComparisons) << turns << " turns";
  }
}

}  // namespace
}  // namespace collage
