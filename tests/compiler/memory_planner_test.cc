#include "lower/memory_planner.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/plan.h"

namespace collage {
namespace {

// Independent of the planner: marks every byte block of every step.
void expect_no_overlap(const std::vector<BufferLifetime>& buffers, const ArenaLayout& layout) {
  for (size_t step = 0; step < 64; ++step) {
    std::vector<int> owner(layout.bytes / kArenaAlignment + 1, -1);
    for (size_t b = 0; b < buffers.size(); ++b) {
      if (step < buffers[b].first || step > buffers[b].last) continue;
      ASSERT_EQ(layout.offsets[b] % kArenaAlignment, 0u);
      ASSERT_LE(layout.offsets[b] + buffers[b].bytes, layout.bytes);
      for (size_t block = layout.offsets[b] / kArenaAlignment;
           block * kArenaAlignment < layout.offsets[b] + buffers[b].bytes; ++block) {
        ASSERT_EQ(owner[block], -1)
            << "buffers " << owner[block] << " and " << b << " overlap at step " << step;
        owner[block] = static_cast<int>(b);
      }
    }
  }
}

TEST(MemoryPlanner, ReusesSpaceOfDeadBuffers) {
  std::vector<BufferLifetime> chain{{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  ArenaLayout layout = plan_arena(chain);
  expect_no_overlap(chain, layout);
  EXPECT_EQ(layout.bytes, 2u * 1024);
}

TEST(MemoryPlanner, NeverOverlapsOnRandomLifetimes) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<BufferLifetime> buffers;
    size_t count = 1 + random() % 40;
    for (size_t i = 0; i < count; ++i) {
      size_t first = random() % 50;
      buffers.push_back({1 + random() % 5000, first, first + random() % 10});
    }
    expect_no_overlap(buffers, plan_arena(buffers));
  }
}

// x -> a -> b on cores of their own, which the host, that computes c and d meanwhile, waits for at
// the sum of b and d.
TEST(MemoryPlanner, KeepsBuffersOfStepsOnOtherCoresUntilTheHostWaited) {
  struct Working : Kernel {
    Status run(const KernelArgs&) override { return {}; }
    size_t workspace_bytes() const override { return 10; }
  };
  Plan plan;
  plan.buffers.resize(7);
  for (Buffer& buffer : plan.buffers) buffer.bytes = 64;
  const auto step = [&](std::vector<BufferId> inputs, BufferId output, int cpu) {
    plan.steps.push_back(
        {"", "", std::make_shared<Working>(), inputs, {output}, 0, {"cpu", cpu, ""}});
  };
  step({0}, 1, 1);
  step({1}, 2, 1);
  step({0}, 3, 0);
  step({3}, 4, 0);
  step({2, 4}, 5, 0);
  step({5}, 6, 1);
  std::string text;
  for (const ArenaSlot& slot : arena_slots(plan))
    text += (slot.buffer ? std::to_string(*slot.buffer) : "w") + ":" +
            std::to_string(slot.lifetime.first) + "-" + std::to_string(slot.lifetime.last) + " ";
  EXPECT_EQ(text, "0:0-4 1:0-4 w:0-4 2:1-4 w:1-4 3:2-3 w:2-2 4:3-4 w:3-3 5:4-5 w:4-4 6:5-5 w:5-5 ");
}

}  // namespace
}  // namespace collage
