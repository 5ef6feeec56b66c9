#include "choose/prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace collage {
namespace {

TimingRow timing(const std::string& model, double alone, double measured, size_t switches = 0) {
  return {model, alone, switches, 0, Measured{measured, measured, measured, 20}};
}

// Covers of some models by a machine that behaves as the correction says, but for some noise.
std::vector<TimingRow> taught_by(const Correction& truth, size_t models, double noise) {
  std::mt19937 random(3);
  auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<TimingRow> covers;
  for (size_t model = 0; model < models; ++model) {
    const double alone = std::exp(draw(-6.5, -1));
    for (size_t cover = 0; cover < 6; ++cover) {
      const auto switches = static_cast<size_t>(draw(0, 40));
      double seconds = truth.predict(alone, switches) * (1 + noise * draw(-1, 1));
      covers.push_back(timing("model " + std::to_string(model), alone, seconds, switches));
    }
  }
  return covers;
}

TEST(Prediction, NothingLearntIsWhatIsAssumed) {
  Correction correction = learn_correction({});
  EXPECT_DOUBLE_EQ(correction.scale, 1);
  EXPECT_DOUBLE_EQ(correction.per_switch, kSecondsPerSwitch);
  EXPECT_DOUBLE_EQ(correction.predict(2.0, 0), 2.0);
}

TEST(Prediction, LearnsWhatTheMachineDoes) {
  Correction truth{0.96, 120e-6};
  Correction learnt = learn_correction(taught_by(truth, 12, 0.02));
  EXPECT_NEAR(learnt.scale, truth.scale, 0.01);
  EXPECT_NEAR(learnt.per_switch, truth.per_switch, 15e-6);
  for (const TimingRow& cover : taught_by(truth, 30, 0))
    EXPECT_NEAR(learnt.predict(cover.kernel_seconds, cover.switches), cover.measured.median,
                0.04 * cover.measured.median);
}

TEST(Prediction, LittleDataChangesLittleAndOutliersDoNotCount) {
  std::vector<TimingRow> one = {timing("m", 1e-2, 1.2e-2)};
  Correction learnt = learn_correction(one);
  EXPECT_LT(learnt.scale, 1.05);
  EXPECT_DOUBLE_EQ(learnt.per_switch, kSecondsPerSwitch);
  Correction truth{0.98, 80e-6};
  std::vector<TimingRow> many = taught_by(truth, 12, 0.01);
  for (size_t k = 0; k < many.size(); k += 9) many[k].measured.median *= 2;  // disturbed
  learnt = learn_correction(many);
  EXPECT_NEAR(learnt.scale, truth.scale, 0.02);
}

// Models measured in minutes of their own disagree: their mean says little.
TEST(Prediction, ModelsThatDisagreeTeachLess) {
  std::vector<TimingRow> agreeing, disagreeing;
  for (int m = 0; m < 6; ++m) {
    const std::string model = "model " + std::to_string(m);
    agreeing.push_back(timing(model, 1e-2, 1.04e-2));
    disagreeing.push_back(timing(model, 1e-2, m % 2 == 0 ? 1.14e-2 : 0.95e-2));
  }
  EXPECT_GT(learn_correction(agreeing).scale, 1.03);
  EXPECT_NEAR(learn_correction(disagreeing).scale, 1, 0.01);
}

TEST(Prediction, StaysWithinItsBounds) {
  Correction learnt = learn_correction(taught_by({3, 5e-3}, 10, 0));
  EXPECT_LE(learnt.scale, 1.1);
  EXPECT_LE(learnt.per_switch, 300e-6);
}

TEST(Prediction, EveryModelCountsTheSame) {
  std::vector<TimingRow> taught;
  for (int k = 0; k < 100; ++k) taught.push_back(timing("large", 1e-2, 1.04e-2));
  taught.push_back(timing("small", 1e-2, 0.96e-2));
  EXPECT_NEAR(learn_correction(taught).scale, 1, 5e-3);
}

}  // namespace
}  // namespace collage
