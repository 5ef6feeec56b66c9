// Covers whose devices compute side by side: what they take, and which are found.
#include "search/side_by_side.h"

#include <gmock/gmock.h>

#include "search/fixture.h"

namespace collage {
namespace {

const VirtualDevice kGpu{"gpu", 0, ""};

TEST(DeviceSteps, TakeTheLongestWay) {
  // upload (1), gpu (5), download (1), beside the host's own (4) and (2); then their sum (1).
  std::vector<DeviceStep> steps(6);
  steps[0] = {{}, {}, {}, {}, 4};
  steps[1] = {{}, {}, {}, kGpu, 1};
  steps[2] = {{1}, kGpu, {}, {}, 5};
  steps[3] = {{2}, {}, kGpu, {}, 1};
  steps[4] = {{0}, {}, {}, {}, 2};
  steps[5] = {{3, 4}, {}, {}, {}, 1};
  EXPECT_THAT(overlapped_order(steps), ::testing::ElementsAre(1, 2, 0, 4, 3, 5));
  EXPECT_DOUBLE_EQ(overlapped_seconds(steps), 1 + 6 + 1 + 1);  // the gpu is done before the host
  steps[2].seconds = 8;
  EXPECT_DOUBLE_EQ(overlapped_seconds(steps), 1 + 8 + 1 + 1);  // the host waits for it
}

TEST(DeviceSteps, ADeviceDoesOneThingAfterTheOther) {
  std::vector<DeviceStep> steps(3);
  for (DeviceStep& step : steps) step = {{}, kGpu, {}, {}, 2};
  steps[2].device.id = 1;
  EXPECT_DOUBLE_EQ(overlapped_seconds(steps), 4);
}

// Which shares the host's memory: nothing is moved there or back.
TEST(DeviceSteps, TheHostWaitsLateForACpuDevice) {
  const VirtualDevice little{"cpu", 1, ""};
  std::vector<DeviceStep> steps(4);
  steps[0] = {{}, {}, {}, {}, 4};
  steps[1] = {{}, little, {}, {}, 5};
  steps[2] = {{1}, {}, {}, {}, 1};
  steps[3] = {{0}, {}, {}, {}, 2};
  EXPECT_THAT(overlapped_order(steps), ::testing::ElementsAre(1, 0, 3, 2));
  EXPECT_DOUBLE_EQ(overlapped_seconds(steps), 4 + 2 + 1);
  steps[1].seconds = 8;
  EXPECT_DOUBLE_EQ(overlapped_seconds(steps), 8 + 1);
}

// Two chains of two operators that are added. The host takes 4 for each, the other device `gpu`.
class SideBySide : public ::testing::Test {
 protected:
  explicit SideBySide(double gpu = 5) : f(kChains) {
    for (const char* node : {"a", "b", "d", "e"}) {
      f.add("host", {node}, 4);
      f.add("acc -device=gpu", {node}, gpu, {"@gpu"}, {"@gpu"});
    }
    f.add("host", {"result"}, 1);
  }
  static constexpr char kChains[] =
      "x; a = relu(x); b = relu(a); d = tanh(x); e = tanh(d); return add(b, e)";
  Fixture f;
};

TEST_F(SideBySide, MovesABranchThatCostsMoreByItself) {
  const Cover cheapest = search_covers(f.problem)->covers[0];
  EXPECT_EQ(f.text(cheapest), "host: a | host: b | host: d | host: e | host: result");
  EXPECT_DOUBLE_EQ(overlapped_seconds(f.problem, cheapest), 17);
  const SearchResult found = cover_side_by_side(f.problem, cheapest);
  ASSERT_EQ(found.covers.size(), 1U);
  const Cover& cover = found.covers[0];
  check_cover(f, cover);
  EXPECT_DOUBLE_EQ(cover.seconds, 21);  // 2 for the transfers, and 10 in place of 8
  // Upload, then 10 on the device beside 8 on the host, then download and sum.
  EXPECT_DOUBLE_EQ(overlapped_seconds(f.problem, cover), 1 + 10 + 1 + 1);
}

TEST_F(SideBySide, FindsNothingWhereTransfersTakeMore) {
  f.problem.conversion_cost = [](const auto&...) { return 5.0; };
  EXPECT_TRUE(cover_side_by_side(f.problem, search_covers(f.problem)->covers[0]).covers.empty());
}

TEST_F(SideBySide, FindsNothingOnOneDevice) {
  for (CandidateCosts& candidate : f.problem.candidates)
    if (candidate.candidate->spec->target.device == kGpu) candidate.variants.clear();
  EXPECT_TRUE(cover_side_by_side(f.problem, search_covers(f.problem)->covers[0]).covers.empty());
}

TEST(SideBySideOf, FunctionsOfSeveralInputsHaveABranchForEach) {
  Fixture f("x; y; a = relu(x); b = tanh(y); return add(a, b)");
  for (const char* node : {"a", "b"}) {
    f.add("host", {node}, 12);
    f.add("acc -device=gpu", {node}, 8, {"@gpu"}, {"@gpu"});
  }
  f.add("host", {"result"}, 1);
  const Cover cheapest = search_covers(f.problem)->covers[0];
  EXPECT_DOUBLE_EQ(cheapest.seconds, 2 * (1 + 8 + 1) + 1);
  const SearchResult found = cover_side_by_side(f.problem, cheapest);
  ASSERT_EQ(found.covers.size(), 1U);
  const Cover& cover = found.covers[0];
  EXPECT_DOUBLE_EQ(overlapped_seconds(f.problem, cover), 1 + 12 + 1 + 1);
}

}  // namespace
}  // namespace collage
