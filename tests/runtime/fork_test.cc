// Programs run in a child process (fork) as in its parent.
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/in_child.h"
#include "runtime/of_process.h"
#include "runtime/thread_team.h"

namespace collage {
namespace {

using testing::in_child;

constexpr int kForkTeam = 3;

// How many calls a region has.
int calls_of_region() {
  std::atomic<int> calls{0};
  const Status status = run_with_team(kForkTeam, [&] {
#pragma omp parallel
    ++calls;
    return Status();
  });
  return status.ok() ? calls.load() : -1;
}

TEST(Fork, ChildrenHaveTeamsOfTheirOwn) {
  EXPECT_EQ(calls_of_region(), kForkTeam);
  EXPECT_EQ(in_child([] {
              for (int run = 0; run < 50; ++run)
                if (calls_of_region() != kForkTeam) return 1;
              return in_child([] { return calls_of_region() == kForkTeam ? 0 : 2; });
            }),
            0);
  EXPECT_EQ(calls_of_region(), kForkTeam);
}

TEST(Fork, MayHappenWithinARun) {
  const Status status = run_with_team(kForkTeam, [&]() -> Status {
    EXPECT_EQ(in_child([] { return calls_of_region() == kForkTeam ? 0 : 1; }), 0);
    EXPECT_EQ(calls_of_region(), kForkTeam);
    return {};
  });
  EXPECT_TRUE(status.ok());
}

TEST(Fork, MayHappenWhileOthersRun) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) EXPECT_EQ(calls_of_region(), kForkTeam);
  });
  for (int fork = 0; fork < 20; ++fork)
    EXPECT_EQ(in_child([] { return calls_of_region() == kForkTeam ? 0 : 1; }), 0);
  stop = true;
  other.join();
}

TEST(OfProcess, IsANewOneInAChild) {
  OfProcess<std::mutex> mutex;
  std::atomic<bool> locked{false}, stop{false};
  std::thread other([&] {
    const std::lock_guard lock(mutex.get());
    locked = true;
    while (!stop) std::this_thread::yield();
  });
  while (!locked) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              const std::lock_guard lock(mutex.get());
              return 0;
            }),
            0);
  stop = true;
  other.join();
  const std::lock_guard lock(mutex.get());
}

}  // namespace
}  // namespace collage
