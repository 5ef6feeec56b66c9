// Schedules of what has no template: their text, the space a search draws from, and that every one
// of it computes the same.
#include "backend/native/stages/stage_choices.h"

#include <gmock/gmock.h>

#include <random>

#include "backend/native/called_program.h"
#include "check.h"

namespace collage::native {
namespace {

using ::testing::Contains;
using ::testing::Not;

TEST(StageChoices, OneTextOfEach) {
  for (const char* text :
       {"stages", "rows 16", "stages packed", "rows 4 packed vectors 2 lines 4 tasks 0 steps 8",
        "stages tile 6x2", "stages steps 0 tile 0x3 scalar keep 1", "rows 1 tasks 32",
        "stages dot_uint8x4 tasks 1 steps 1 ahead", "rows 4 dot_int16x2 steps 1"}) {
    const auto schedule = parse_stage_schedule(text);
    ASSERT_TRUE(schedule) << text;
    EXPECT_EQ(schedule->to_string(), text);
  }
  for (const char* text : {"", "rows", "fused", "program", "rows 0", "stages  packed", "packed",
                           "stages rows 2", "stages vectors 1", "stages vectors 99",
                           "stages lines x", "stages tile 6", "stages tile 6x", "stages steps -1",
                           "stages keep", "rows 16 packed packed", "stages tasks 2 vectors 2"})
    EXPECT_FALSE(parse_stage_schedule(text)) << text;
}

std::vector<std::string> names_of(const std::vector<StageDecision>& decisions) {
  std::vector<std::string> names;
  for (const StageDecision& decision : decisions) names.push_back(decision.name);
  return names;
}

std::vector<std::string> decided_of(const Function& f) {
  return names_of(stage_decisions(emitted_stages(f).value()));
}

TEST(StageChoices, FollowFromTheStructure) {
  const Expr x = var("x", {8, 24});
  EXPECT_THAT(decided_of(function({x}, call("tanh", {x}))),
              ::testing::ElementsAre("tasks", "vectors", "lines"));
  EXPECT_THAT(decided_of(function({x}, call("nn.softmax", {x}))), Contains("rows"));
  EXPECT_THAT(decided_of(function({x}, call("mean", {x}, {{"axis", Ints{0}}}))), Contains("steps"));
  const Expr w = var("w", {24, 16});
  EXPECT_THAT(decided_of(function({x, w}, call("nn.matmul", {x, w}))), Contains("packed"));
}

// Draws from the space of each function, and runs what was drawn.
void check_drawn(const Function& f, int count) {
  std::mt19937_64 random(3);
  const auto decisions = stage_decisions(emitted_stages(f).value());
  for (int i = 0; i < count; ++i) {
    std::vector<size_t> choice;
    for (const StageDecision& decision : decisions)
      choice.push_back(random() % decision.options.size());
    const StageSchedule schedule = decided_schedule(decisions, choice);
    SCOPED_TRACE(schedule.to_string());
    ASSERT_EQ(parse_stage_schedule(schedule.to_string()), schedule);
    ASSERT_EQ(choice_of(decisions, schedule), choice);
    check_variant(f, scheduled(schedule.to_string(), f), {.tolerance = 1e-4});
  }
}

TEST(StageChoices, ElementWise) {
  for (const Shape& shape : {Shape{7}, {70000}, {13, 37}, {2, 3, 50, 33}}) {
    const Expr x = var("x", shape), y = var("y", shape);
    check_drawn(function({x, y}, call("nn.relu", {call("add", {x, call("tanh", {y})})})), 8);
  }
}

TEST(StageChoices, Rows) {
  for (const Shape& shape : {Shape{3, 5}, {4, 6}, {2, 17, 129}, {64, 64}}) {
    const Expr x = var("x", shape);
    check_drawn(function({x}, call("nn.softmax", {x})), 12);
  }
  const Expr x = var("x", {19, 100}), gain = var("g", {100}), shift = var("s", {100});
  check_drawn(function({x, gain, shift}, call("nn.layer_norm", {x, gain, shift})), 12);
}

TEST(StageChoices, Windows) {
  for (const int64_t size : {5, 14, 41}) {
    const Expr x = var("x", {1, 3, size, size});
    const Attrs window = {{"pool_size", Ints{3, 3}}, {"padding", Ints{1, 1, 1, 1}}};
    check_drawn(function({x}, call("nn.avg_pool2d", {x}, window)), 10);
    check_drawn(function({x}, call("nn.relu", {call("nn.max_pool2d", {x}, window)})), 10);
  }
  const Expr x = var("x", {2, 30, 7, 7});
  check_drawn(function({x}, call("nn.global_avg_pool2d", {x})), 10);
}

TEST(StageChoices, MovedAndJoined) {
  const Expr x = var("x", {5, 12, 18}), y = var("y", {5, 12, 7});
  check_drawn(function({x}, call("transpose", {x}, {{"axes", Ints{2, 0, 1}}})), 10);
  check_drawn(function({x, y}, call("concatenate", {make_tuple({x, y})}, {{"axis", int64_t{2}}})),
              10);
}

TEST(StageChoices, SeveralResults) {
  const Expr x = var("x", {6, 40});
  check_drawn(function({x}, call("split", {x},
                                 {{"indices_or_sections", Ints{8, 24}}, {"axis", int64_t{1}}})),
              6);
}

TEST(StageChoices, Sums) {
  const Expr x = var("x", {9, 20, 33});
  for (const int64_t axis : {0, 1, 2})
    check_drawn(function({x}, call("mean", {x}, {{"axis", Ints{axis}}})), 8);
}

}  // namespace
}  // namespace collage::native
