#include "report/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace collage {
namespace {

using ::testing::HasSubstr;

Profile two_layers() {
  Profile profile;
  profile.layers.push_back({"onednn_nn_conv2d",
                            "onednn",
                            "direct /conv",
                            1e-3,
                            0.9e-3,
                            2e8,
                            1e6,
                            {"float32", 2e8, 1e6, 0}});
  profile.layers.push_back(
      {"convert_aBcd16b", "", "plain to aBcd16b", 3e-3, 0, 0, 6e6, {"float32", 0, 6e6, 0}});
  profile.runs = {{1e-3, 3e-3}, {2e-3, 4e-3}};
  profile.whole_runs = {5e-3, 6e-3};
  return profile;
}

const MachinePeaks kPeaks{400e9, {}, {{"memory", std::numeric_limits<double>::infinity(), 10e9}}};

TEST(Layers, TableListsTheSlowestFirstWithItsShare) {
  EXPECT_EQ(
      layers_table(two_layers(), kPeaks),
      "step        ms predicted  share  GFLOP/s    GB/s  of roof      kernel\n"
      "   1    3.0000    0.0000  75.0%      0.0     2.0   20% memory   convert_aBcd16b  plain to "
      "aBcd16b\n"
      "   0    1.0000    0.9000  25.0%    200.0     1.0   50% float32  onednn_nn_conv2d  direct "
      "/conv\n"
      "2 steps 4.000 ms, predicted 0.900 ms, a run 5.500 ms, roofline 1.100 ms at 400 GFLOP/s, "
      "memory 10.0 GB/s\n");
}

TEST(Layers, RooflineTakesTheLargerOfComputingAndMoving) {
  MachinePeaks peaks = kPeaks;
  std::string table = layers_table(two_layers(), peaks);
  EXPECT_THAT(table, HasSubstr("   20% memory   convert_aBcd16b"));
  EXPECT_THAT(table, HasSubstr("   50% float32  onednn_nn_conv2d"));
  EXPECT_THAT(table, HasSubstr("roofline 1.100 ms at 400 GFLOP/s, memory 10.0 GB/s"));
  Profile with_a_unit = two_layers();
  with_a_unit.layers[0].work.unit = "bfloat16";
  peaks.unit_operations_per_second["bfloat16"] = 1000e9;
  table = layers_table(with_a_unit, peaks);
  EXPECT_THAT(table, HasSubstr("   20% bfloat16 onednn_nn_conv2d"));
  EXPECT_THAT(table, HasSubstr("ms at 400 GFLOP/s, bfloat16 1000, memory 10.0 GB/s"));
}

}  // namespace
}  // namespace collage
