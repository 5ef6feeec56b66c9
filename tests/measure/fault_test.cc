// Whose fault a failure is: the kernel's, which is kept, or the machine's, which is not.
#include "measure/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "measure/own_time.h"
#include "measure/task.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

// How a process ends that does this.
int status_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Faults, OfAnAnswer) {
  EXPECT_EQ(fault_of(internal_error("wrong")).failure, WorkerFailure::kNone);
  const Invalid lacking = fault_of(error(ErrorCode::kUnavailable, "no space left"));
  EXPECT_EQ(lacking.failure, WorkerFailure::kMachine);
  EXPECT_EQ(lacking.reason, "no space left");
}

TEST(Faults, OfAnExit) {
  const int one = status_of([] { ::_exit(1); }), crash = status_of([] { ::raise(SIGILL); }),
            killed = status_of([] { ::raise(SIGKILL); });
  EXPECT_EQ(fault_of_exit(one, 0).failure, WorkerFailure::kCrash);
  EXPECT_EQ(fault_of_exit(crash, 0).failure, WorkerFailure::kCrash);
  EXPECT_EQ(fault_of_exit(killed, 0).failure, WorkerFailure::kMemory);
  EXPECT_EQ(fault_of_exit(crash, kLacksMemory | kLacksDisk).failure, WorkerFailure::kMemory);
  EXPECT_THAT(fault_of_exit(crash, kLacksMemory).reason, HasSubstr("out of memory: killed by"));
  for (const uint32_t lack : {kLacksThreads, kLacksDisk})
    EXPECT_EQ(fault_of_exit(one, lack).failure, WorkerFailure::kMachine);
  EXPECT_THAT(fault_of_exit(one, kLacksThreads).reason, HasSubstr("no thread can be started"));
  EXPECT_THAT(fault_of_exit(one, kLacksDisk).reason, HasSubstr("temporary files is full"));
}

TEST(Faults, WhatIsLackingIsSeen) {
  // In processes of their own: one that had a thread keeps its stack for the next.
  const auto lacks = [](const std::function<void()>& limit, bool in_signal) {
    return WEXITSTATUS(status_of([&] {
      limit();
      ::_exit(static_cast<int>(lacking_now(in_signal)));
    }));
  };
  const auto no_memory = [] {
    const rlimit little{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_AS, &little);
  };
  const auto no_disk = [] { ::setenv("TMPDIR", "/nonexistent", 1); };
  EXPECT_EQ(lacks([] {}, false), 0);
  EXPECT_TRUE(lacks(no_memory, true) & kLacksMemory);
  EXPECT_EQ(lacks(no_memory, false) & (kLacksMemory | kLacksThreads), kLacksMemory | kLacksThreads)
      << "a thread needs a stack";
  EXPECT_EQ(lacks(no_disk, true), kLacksDisk);
}

TEST(Faults, AreNotKeptWhereTheyAreTheMachines) {
  TargetCosts costs;
  costs.variants = {{{"a", {}, {}}, Measured{1, 1, 1, 3}}};
  for (const WorkerFailure failure :
       {WorkerFailure::kNone, WorkerFailure::kCrash, WorkerFailure::kTimeout}) {
    costs.variants.push_back({{"b", {}, {}}, Invalid{"x", failure}});
    EXPECT_FALSE(lacks_resources(costs));
  }
  for (const WorkerFailure failure : {WorkerFailure::kMemory, WorkerFailure::kMachine}) {
    TargetCosts of_variant = costs, of_target;
    of_variant.variants.push_back({{"c", {}, {}}, Invalid{"x", failure}});
    of_target.failure = failure;
    EXPECT_TRUE(lacks_resources(of_variant));
    EXPECT_TRUE(lacks_resources(of_target));
  }
}

// What a process spends waiting for a processor is no silence of its own.
TEST(OwnTime, IsWhatAProcessSleptOrRan) {
  const auto of = [](const std::function<void()>& body, double seconds) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    ::usleep(50'000);
    OwnTime time(child);
    const double own = time.of(seconds);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return own;
  };
  EXPECT_DOUBLE_EQ(of([] { ::sleep(1000); }, 500), 500);
  // It ran for next to nothing of the 500 s that are said to have passed.
  EXPECT_LT(of(
                [] {
                  for (int i = 0;; ++i) asm volatile("" : "+r"(i));
                },
                500),
            250);
}

}  // namespace
}  // namespace collage
