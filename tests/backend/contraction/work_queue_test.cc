// Pieces of a work queue: each is done once.
#include "backend/contraction/kernels/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace collage::contraction {
namespace {

TEST(WorkQueue, ThreadsBeginWithTheirOwnAndTakeFromTheBackOfOthers) {
  WorkQueue queue(2);
  queue.reset(5);
  EXPECT_EQ(queue.next(0), 0);
  EXPECT_EQ(queue.next(1), 2);
  EXPECT_EQ(queue.next(0), 1);
  EXPECT_EQ(queue.next(0), 4) << "the other's last";
  EXPECT_EQ(queue.next(1), 3);
  EXPECT_EQ(queue.next(0), std::nullopt);
  EXPECT_EQ(queue.next(1), std::nullopt);
}

TEST(WorkQueue, EachPieceOnceAmongManyThreads) {
  for (const int64_t count : {0, 1, 7, 20'000}) {
    constexpr int kThreads = 4;
    WorkQueue queue(kThreads + 1);  // one never comes
    queue.reset(count);
    std::vector<std::vector<int64_t>> taken(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        while (const auto piece = queue.next(t)) taken[static_cast<size_t>(t)].push_back(*piece);
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<int64_t> all;
    for (const auto& some : taken) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
  }
}

}  // namespace
}  // namespace collage::contraction
