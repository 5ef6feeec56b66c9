// Successive halving on programs that only say what their runs take.
#include "choose/race.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace collage {
namespace {

// Programs with a true time each; runs scatter around it, and the machine slows down as time goes.
class Field {
 public:
  explicit Field(std::vector<double> truth, unsigned seed = 7, double noise = 0.02)
      : truth_(std::move(truth)), noise_(noise), random_(seed) {}

  Prepare prepare() {
    return [this](size_t index) -> Result<RunBlock> {
      if (broken.count(index)) return error(ErrorCode::kVerification, "wrong");
      auto life = std::shared_ptr<void>(&alive_, [this](void*) { --alive_; });
      most_alive = std::max(most_alive, ++alive_);
      prepared.push_back(index);
      return RunBlock([this, index, life](double part, std::vector<double>& samples) -> Status {
        blocks += part;
        slowdown *= drift;
        for (int run = 0; run < 20 * part; ++run)
          samples.push_back(truth_[index] * slowdown *
                            (1 + noise_ * std::normal_distribution<double>()(random_)));
        return {};
      });
    };
  }
  std::vector<Racer> racers() const { return std::vector<Racer>(truth_.size()); }

  std::set<size_t> broken;
  std::vector<size_t> prepared;
  int most_alive = 0;
  double blocks = 0;  // whole ones
  double drift = 1, slowdown = 1;

 private:
  std::vector<double> truth_;
  double noise_;
  int alive_ = 0;
  std::mt19937 random_;
};

TEST(Race, TheFastestWinsAndTheSlowAreNotTimedForLong) {
  Field field({1.3, 1.2, 1.0, 1.1, 2.0, 1.5, 1.4, 1.6});
  std::vector<Racer> racers = field.racers();
  EXPECT_EQ(*run_race(racers, field.prepare(), {.alive = 8}), 2u);
  EXPECT_LE(field.blocks, 2 * 8 / 4.0 + 4 / 2.0 + 2 + 2);
  EXPECT_NEAR(racers[2].measured->median, 1.0, 0.02);
  EXPECT_NEAR(racers[4].measured->median, 2.0, 0.04);
}

TEST(Race, FiguresDoNotDriftWithTheMachine) {
  for (size_t alive : {2, 3, 16}) {
    Field field({1.2, 1.1, 1.0, 1.3, 1.05, 1.4});
    field.drift = 1.005;
    std::vector<Racer> racers = field.racers();
    EXPECT_EQ(*run_race(racers, field.prepare(), {.alive = alive}), 2u);
    double winner = racers[2].measured->median;
    EXPECT_NEAR(racers[5].measured->median / winner, 1.4, 0.04);
    EXPECT_NEAR(racers[1].measured->median / winner, 1.1, 0.04);
    EXPECT_LE(field.most_alive, static_cast<int>(alive));
  }
}

// As if a neighbour took the machine for a while: whoever runs then has another block.
TEST(Race, ADisturbedBlockDoesNotDecide) {
  for (size_t disturbed = 0; disturbed < 8; ++disturbed) {
    Field field({1.3, 1.2, 1.0, 1.1, 1.5, 1.5, 1.4, 1.6});
    const Prepare prepare = field.prepare();
    size_t blocks = 0;
    const Prepare disturb = [&](size_t index) -> Result<RunBlock> {
      RunBlock run = TRY(prepare(index));
      return RunBlock([&blocks, disturbed, run](double part, std::vector<double>& samples) {
        Status status = run(part, samples);
        if (blocks++ == disturbed)
          for (double& sample : samples) sample *= 2;
        return status;
      });
    };
    std::vector<Racer> racers = field.racers();
    EXPECT_EQ(*run_race(racers, disturb, {.alive = 8}), 2u) << disturbed;
    EXPECT_NEAR(racers[2].measured->median, 1.0, 0.03);
  }
}

// Equal programs in many groups: each group's winner was lucky, and so would be the figure of the
// last one, by a little more each time.
TEST(Race, LuckDoesNotAddUp) {
  double sum = 0;
  constexpr int kTimes = 20;
  for (unsigned seed = 0; seed < kTimes; ++seed) {
    Field field(std::vector<double>(12, 1.0), seed, 0.1);
    std::vector<Racer> racers = field.racers();
    const size_t winner = run_race(racers, field.prepare(), {.alive = 2})->value();
    ASSERT_TRUE(racers[winner].run != nullptr);
    sum += racers[winner].measured->median;
    for (const Racer& other : racers)
      EXPECT_GE(other.measured->median, racers[winner].measured->median);
    EXPECT_EQ(field.most_alive, 2);
  }
  EXPECT_NEAR(sum / kTimes, 1.0, 0.025);
}

TEST(Race, OfThoseThatAreAlikeTheFirstInRankWins) {
  for (size_t alive : {2, 6})
    for (unsigned seed = 0; seed < 10; ++seed) {
      Field field({1.0, 1.06, 1.006, 1.3, 0.998, 1.004}, seed);
      std::vector<Racer> racers = field.racers();
      for (size_t i : {0, 1, 2, 3, 4, 5}) racers[i].rank = (i + 5) % 6;  // 1 is the first, then 2
      EXPECT_EQ(*run_race(racers, field.prepare(), {.alive = alive}), 2u) << seed;
      EXPECT_EQ(winner_of(racers), 2u) << "by the figures, too, which are kept";
      EXPECT_NEAR(racers[1].measured->median, 1.06, 0.04);
      EXPECT_LE(field.most_alive, static_cast<int>(alive));
    }
}

TEST(Race, AProgramThatIsSurelySlowerDoesNotWinByItsRank) {
  Field field({1.0, 1.05, 1.2});
  std::vector<Racer> racers = field.racers();
  racers[0].rank = 2;
  racers[1].rank = 1;
  EXPECT_EQ(*run_race(racers, field.prepare(), {.alive = 3}), 0u);
}

// What a program costs besides counts like time, as soon as it is made ready.
TEST(Race, AChargeCountsBesideTheTime) {
  Field field({1.0, 1.1, 1.3, 1.2});
  std::vector<Racer> racers = field.racers();
  const Prepare prepare = field.prepare();
  const Prepare charging = [&](size_t index) -> Result<RunBlock> {
    racers[index].charge = index == 1 ? 0 : 0.4;
    return prepare(index);
  };
  EXPECT_EQ(*run_race(racers, charging, {.alive = 4}), 1u);
  EXPECT_NEAR(racers[0].measured->median, 1.0, 0.02) << "its figure is its time alone";
  EXPECT_EQ(winner_of(racers), 1u);
}

TEST(Race, WhatIsKnownIsNotTimedAgainAndNewFiguresAreOnItsScale) {
  Field field({1.0, 1.2, 0.9, 1.1});
  std::vector<Racer> racers = field.racers();
  racers[0].measured = Measured{10, 10, 10, 5};  // on a slower day
  racers[1].measured = Measured{12, 12, 12, 5};
  EXPECT_EQ(*run_race(racers, field.prepare(), {.alive = 4}), 2u);
  EXPECT_THAT(field.prepared, ::testing::ElementsAre(0, 2, 3));
  EXPECT_EQ(racers[0].measured->median, 10);
  EXPECT_NEAR(racers[2].measured->median, 9, 0.2);
  EXPECT_NEAR(racers[3].measured->median, 11, 0.3);
  field.prepared.clear();
  EXPECT_EQ(*run_race(racers, field.prepare(), {}), 2u);
  EXPECT_TRUE(field.prepared.empty());
}

TEST(Race, WhoComputesWrongIsLeftOut) {
  Field field({0.5, 1.0, 1.2});
  field.broken = {0};
  std::vector<Racer> racers = field.racers();
  EXPECT_EQ(*run_race(racers, field.prepare(), {}), 1u);
  EXPECT_THAT(racers[0].failure, ::testing::HasSubstr("wrong"));
  EXPECT_FALSE(racers[0].measured);
  field.broken = {0, 1, 2};
  racers = field.racers();
  EXPECT_EQ(*run_race(racers, field.prepare(), {}), std::nullopt) << "nobody is left";
}

TEST(Race, AnInterruptKeepsWhatWasFound) {
  Field field({1.0, 0.8, 0.9});
  std::vector<Racer> racers = field.racers();
  RaceOptions options;
  options.go_on = [](size_t at, size_t) { return at < 2; };
  EXPECT_EQ(*run_race(racers, field.prepare(), options), 1u);
  EXPECT_FALSE(racers[2].measured);
}

}  // namespace
}  // namespace collage
