#include "report/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

using ::testing::HasSubstr;

Profile two_layers() {
  Profile profile;
  profile.layers.push_back({"onednn_nn_conv2d", "onednn", "direct /conv", 1e-3, 0.9e-3, 2e8, 1e6});
  profile.layers.push_back({"convert_aBcd16b", "", "plain to aBcd16b", 3e-3, 0, 0, 6e6});
  profile.runs = {{1e-3, 3e-3}, {2e-3, 4e-3}};
  profile.whole_runs = {5e-3, 6e-3};
  return profile;
}

TEST(Layers, TableListsTheSlowestFirstWithItsShare) {
  EXPECT_EQ(layers_table(two_layers()),
            "step        ms predicted  share  GFLOP/s    GB/s kernel\n"
            "   1    3.0000    0.0000  75.0%      0.0     2.0 convert_aBcd16b  plain to aBcd16b\n"
            "   0    1.0000    0.9000  25.0%    200.0     1.0 onednn_nn_conv2d  direct /conv\n"
            "2 steps 4.000 ms, predicted 0.900 ms, a run 5.500 ms\n");
}

TEST(Layers, RooflineTakesTheLargerOfComputingAndMoving) {
  MachinePeaks peaks{400e9, 10e9};
  EXPECT_DOUBLE_EQ(roofline_seconds(peaks, "onednn", 2e8, 1e6), 0.5e-3);
  EXPECT_DOUBLE_EQ(roofline_seconds(peaks, "", 0, 6e6), 0.6e-3);
  std::string table = layers_table(two_layers(), &peaks);
  EXPECT_THAT(table, HasSubstr("      20% convert_aBcd16b"));
  EXPECT_THAT(table, HasSubstr("      50% onednn_nn_conv2d"));
  EXPECT_THAT(table, HasSubstr("roofline 1.100 ms at 400 GFLOP/s and 10.0 GB/s"));
  peaks.target_flops_per_second["onednn"] = 1000e9;  // with a unit of its own
  EXPECT_DOUBLE_EQ(roofline_seconds(peaks, "onednn", 2e8, 1e6), 0.2e-3);
  EXPECT_DOUBLE_EQ(roofline_seconds(peaks, "native", 2e8, 1e6), 0.5e-3);
  table = layers_table(two_layers(), &peaks);
  EXPECT_THAT(table, HasSubstr("      20% onednn_nn_conv2d"));
  EXPECT_THAT(table, HasSubstr("ms at 400 GFLOP/s (onednn 1000) and 10.0 GB/s"));
}

TEST(Layers, TraceFollowsOneRun) {
  nlohmann::json trace = chrome_trace(two_layers());
  ASSERT_EQ(trace["traceEvents"].size(), 2U);
  const nlohmann::json& second = trace["traceEvents"][1];
  EXPECT_EQ(second["ph"], "X");
  EXPECT_EQ(second["name"], "convert_aBcd16b");
  EXPECT_DOUBLE_EQ(second["ts"].get<double>(), 2000);
  EXPECT_DOUBLE_EQ(second["dur"].get<double>(), 4000);
}

TEST(Layers, PeaksAreThoseOfAMachine) {
  ThreadTeam team(1);
  MachinePeaks peaks = measure_peaks(team);
  EXPECT_GT(peaks.flops_per_second, 1e8);
  EXPECT_GT(peaks.bytes_per_second, 1e7);
}

}  // namespace
}  // namespace collage
