#include "report/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/statistics.h"
#include "report/sample_report.h"

namespace collage {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Verdict = ReportDiff::Verdict;

// Latencies as a machine gives them: skewed noise, and a speed that wanders by `wander`.
json with_latencies(double milliseconds, unsigned seed, double wander = 0.005, int count = 100) {
  std::mt19937 random(seed);
  std::gamma_distribution<double> noise(2, 0.005);
  std::vector<double> samples;
  for (int i = 0; i < count; ++i)
    samples.push_back(milliseconds * (1 + noise(random) + wander * std::sin(0.1 * i + seed)));
  json report = testing::sample_report();
  report["latency_ms"] = {{"median", median(samples)},
                          {"p10", percentile(samples, 0.1)},
                          {"p90", percentile(samples, 0.9)},
                          {"count", samples.size()},
                          {"samples", samples}};
  return report;
}

TEST(Diff, APlantedFivePerCentIsFoundAndARerunIsNot) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    json before = with_latencies(20, seed);
    EXPECT_EQ(diff_reports(before, with_latencies(21, seed + 100))->verdict, Verdict::kSlower)
        << seed;
    EXPECT_EQ(diff_reports(before, with_latencies(19, seed + 100))->verdict, Verdict::kFaster)
        << seed;
    EXPECT_EQ(diff_reports(before, with_latencies(20, seed + 100))->verdict, Verdict::kSame)
        << seed;
  }
}

TEST(Diff, NoiseIsAtLeastWhatEachRunWandersBy) {
  Result<ReportDiff> diff = diff_reports(with_latencies(20, 1, 0.1), with_latencies(21, 2, 0.1));
  EXPECT_GT(diff->noise, 0.05);
  EXPECT_EQ(diff->verdict, Verdict::kSame);
}

TEST(Diff, ASmallShiftIsSignificantButNotRelevant) {
  Result<ReportDiff> diff = diff_reports(with_latencies(20, 1), with_latencies(20.2, 2));
  EXPECT_LT(diff->p, 0.001);
  EXPECT_EQ(diff->verdict, Verdict::kSame);
}

TEST(Diff, ListsKernelsThatChanged) {
  json before = with_latencies(3, 1), after = with_latencies(3, 2);
  json& softmax = after["kernels"][1];
  softmax["target"] = "onednn";
  softmax["name"] = "onednn_softmax";
  softmax["cost_ms"]["median"] = 1.5;
  json& conv = after["kernels"][0];
  conv["cost_ms"]["median"] = 2.02;  // within its own spread
  Result<ReportDiff> diff = diff_reports(before, after);
  ASSERT_EQ(diff->kernels.size(), 1U);
  EXPECT_EQ(diff->equal_kernels, 1U);
  EXPECT_EQ(diff->kernels[0].ops, "softmax");
  EXPECT_DOUBLE_EQ(diff->kernels[0].milliseconds, 0.5);
  EXPECT_THAT(to_text(*diff), HasSubstr("  - native_softmax  plain  1.0000 ms\n"
                                        "  + onednn_softmax  plain  1.5000 ms\n"));

  after["kernels"][0]["ops"].erase(1);  // the activation left the convolution
  diff = diff_reports(before, after);
  ASSERT_EQ(diff->kernels.size(), 3U);
  EXPECT_EQ(diff->kernels[0].ops, "conv2d");
  EXPECT_EQ(diff->kernels[1].ops, "conv2d relu");
}

TEST(Diff, SaysWhatMakesReportsHardToCompare) {
  json before = with_latencies(3, 1), after = with_latencies(3, 2);
  after["env"]["threads"] = 4;
  after["env"]["versions"]["onednn"] = "3.2";
  after["model_sha256"] = std::string(64, '1');
  EXPECT_THAT(diff_reports(before, after)->notes,
              ElementsAre("the models differ", "the numbers of threads differ",
                          "the versions of onednn differ"));
}

TEST(Diff, NeedsLatencies) {
  Result<ReportDiff> diff = diff_reports(with_latencies(3, 1), testing::sample_report());
  ASSERT_FALSE(diff.ok());
  EXPECT_THAT(diff.status().message(), HasSubstr("the second report holds 0 latencies"));
}

}  // namespace
}  // namespace collage
