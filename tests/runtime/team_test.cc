// Teams of the process: what regions and their loops compute, how many threads there are, and what
// happens where none is to be had.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/on_threads.h"
#include "runtime/team_pool.h"
#include "runtime/thread_team.h"

namespace {

std::atomic<int> threads_left{-1};  // that may be made; negative: any number

// Threads that begin meanwhile get no core until it ends: they wait before they do anything.
std::atomic<bool> no_core{false};

struct Begin {
  void* (*start)(void*);
  void* argument;
};
void* begin_with_a_core(void* begin) {
  const Begin thread = *static_cast<Begin*>(begin);
  delete static_cast<Begin*>(begin);
  while (no_core) usleep(1000);
  return thread.start(thread.argument);
}

}  // namespace

// In the place of the C library's, for this program: as where the system gives no more threads.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left >= 0 && threads_left-- <= 0) {
    threads_left = 0;
    return EAGAIN;
  }
  if (no_core) return create(thread, attributes, begin_with_a_core, new Begin{start, argument});
  return create(thread, attributes, start, argument);
}

namespace collage {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_threads;

constexpr int kTeam = 4, kRegions = 300;

int threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST(TeamRegion, CallsEachIndexOnce) {
  const TeamHold hold(kTeam);
  for (int region = 0; region < kRegions; ++region) {
    std::vector<int> calls(kTeam, 0), sizes(kTeam, 0);
#pragma omp parallel
    {
      ++calls[static_cast<size_t>(omp_get_thread_num())];
      sizes[static_cast<size_t>(omp_get_thread_num())] = omp_get_num_threads();
    }
    ASSERT_THAT(calls, Each(1));
    ASSERT_THAT(sizes, Each(kTeam));
  }
  EXPECT_EQ(omp_get_num_threads(), 1);
  EXPECT_FALSE(omp_in_parallel());
}

// Whoever waits at a barrier is a thread of its own.
TEST(TeamRegion, MeetsAtBarriers) {
  const TeamHold hold(kTeam);
  for (int region = 0; region < kRegions; ++region) {
    std::atomic<int> before{0}, early{0}, singles{0};
#pragma omp parallel
    {
      for (int step = 1; step <= 3; ++step) {
        ++before;
#pragma omp barrier
        if (before < step * kTeam) ++early;
#pragma omp single
        ++singles;
      }
    }
    ASSERT_EQ(early, 0);
    ASSERT_EQ(singles, 3);
  }
}

// A worker that helps with the last calls of one region leaves those of the next one alone.
TEST(TeamRegion, MeetsAtBarriersBehindRegionsWithout) {
  const TeamHold hold(kTeam);
  for (int region = 0; region < 20 * kRegions; ++region) {
    std::atomic<int> calls{0}, early{0};
#pragma omp parallel
    ++calls;
#pragma omp parallel
    {
      ++calls;
#pragma omp barrier
      if (calls < 2 * kTeam) ++early;
    }
    ASSERT_EQ(early, 0);
  }
}

// Loops of every kind, with more and with fewer iterations than threads, one after another in one
// region, with and without waiting in between.
TEST(TeamRegion, SharesLoops) {
  for (const int threads : {1, kTeam}) {
    const TeamHold hold(threads);
    for (const int count : {0, 1, 3, 64, 1001}) {
      std::vector<int> calls(static_cast<size_t>(count), 0);
      long sum = 0;
      for (int region = 0; region < 20; ++region) {
#pragma omp parallel
        {
#pragma omp for schedule(static) nowait
          for (int i = 0; i < count; ++i)
#pragma omp atomic
            ++calls[static_cast<size_t>(i)];
#pragma omp for schedule(dynamic, 3) nowait
          for (int i = 0; i < count; ++i)
#pragma omp atomic
            ++calls[static_cast<size_t>(i)];
#pragma omp for schedule(dynamic)
          for (int i = count - 1; i >= 0; --i)
#pragma omp atomic
            ++calls[static_cast<size_t>(i)];
        }
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : sum)
        for (int i = 0; i < count; ++i) sum += i;
#pragma omp parallel for schedule(static, 2)
        for (int i = 0; i < count; ++i)
#pragma omp critical(calls_of_iterations)
          ++calls[static_cast<size_t>(i)];
      }
      EXPECT_THAT(calls, Each(80)) << threads << " threads, " << count << " iterations";
      EXPECT_EQ(sum, 20L * count * (count - 1) / 2);
    }
  }
}

// What a worker without a core has not begun, another thread computes: the region ends without it.
TEST(TeamRegion, EndsWithoutAWorkerThatHasNoCore) {
  constexpr int kAwake = 2, kPatience = 20000;  // milliseconds
  std::atomic<bool> done{false}, ended{false};
  std::thread patience([&] {
    for (int waited = 0; !done && waited < kPatience; ++waited) usleep(1000);
    ended = done.load();
    no_core = false;
  });
  {
    WorkerTeam team;
    team.resize(kAwake);
    no_core = true;
    team.resize(kTeam);
    std::vector<int> calls(kTeam, 0);
    const Place before = here();
    for (int region = 0; region < kRegions; ++region) {
      team.begin(kTeam, kTeam, [](void* data) { ++static_cast<int*>(data)[here().index]; },
                 calls.data(), {});
      ++calls[0];
      team.end();
    }
    here() = before;
    done = true;
    patience.join();
    EXPECT_THAT(calls, Each(kRegions));
  }
  EXPECT_TRUE(ended) << "it waited for the worker";
}

// A worker on the leader's core would take turns with it while another core is free.
TEST(TeamPool, KeepsWorkersOffTheLeadersCore) {
  cpu_set_t cores;
  ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof cores, &cores), 0);
  if (CPU_COUNT(&cores) < 2) GTEST_SKIP() << "one core";
  int leader = -1;
  cpu_set_t own, workers;
  do {  // until the leader stayed where it was
    leader = sched_getcpu();
    const TeamHold hold(2);
#pragma omp parallel
    {
      pthread_getaffinity_np(pthread_self(), sizeof cores,
                             omp_get_thread_num() == 0 ? &own : &workers);
#pragma omp barrier
    }
  } while (sched_getcpu() != leader);
  EXPECT_TRUE(CPU_EQUAL(&own, &cores));
  EXPECT_FALSE(CPU_ISSET(leader, &workers));
  CPU_SET(leader, &workers);
  EXPECT_TRUE(CPU_EQUAL(&workers, &cores));
  // Where there is no core for each, all share what there is. (The barriers keep the leader from
  // computing both indices.)
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(leader, &one);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
  {
    const TeamHold hold(2);
#pragma omp parallel
    {
      if (omp_get_thread_num() == 1)
        pthread_getaffinity_np(pthread_self(), sizeof workers, &workers);
#pragma omp barrier
    }
  }
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
  EXPECT_TRUE(CPU_EQUAL(&workers, &one));
}

TEST(TeamRegion, IsAloneWithinAnother) {
  const TeamHold hold(kTeam);
  std::atomic<int> inner{0}, sizes{0};
#pragma omp parallel
  {
#pragma omp parallel num_threads(3)
    {
      ++inner;
      sizes += omp_get_num_threads();
    }
  }
  EXPECT_EQ(inner, kTeam);
  EXPECT_EQ(sizes, kTeam);
}

TEST(TeamPool, BoundsTheThreadsOfAProcess) {
  constexpr int kCallers = 20, kWanted = 8;
  const int before = threads_of_process() - TeamPool::of_process().workers();
  const int most = std::max(ThreadTeam::available_cores(), kWanted - 1);
  std::atomic<int> done{0}, calls{0};
  std::atomic<int> seen{0};
  on_threads(kCallers, [&](int) {
    for (int run = 0; run < 20; ++run) {
      const Status status = run_with_team(kWanted, [&] {
#pragma omp parallel
        ++calls;
        return Status();
      });
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
    if (++done == kCallers) seen = threads_of_process();
    while (seen == 0) std::this_thread::yield();
  });
  EXPECT_EQ(calls, kCallers * 20 * kWanted);
  EXPECT_LE(TeamPool::of_process().workers(), most);
  EXPECT_LE(seen, before + kCallers + most);
}

// A smaller team than one that is idle is a part of it, a larger one takes the place of idle ones.
TEST(TeamPool, UsesWhatIsIdle) {
  TeamPool pool(4);
  WorkerTeam *first = pool.take(3, true), *second = pool.take(3, true);
  EXPECT_EQ(pool.workers(), 4);
  pool.give_back(first);
  pool.give_back(second);
  EXPECT_EQ(pool.take(2, true), second);
  pool.give_back(second);
  WorkerTeam* large = pool.take(5, true);
  EXPECT_EQ(large->size(), 5);
  EXPECT_EQ(pool.workers(), 4);
  // Who holds one waits for nobody, and what it made too much goes again.
  WorkerTeam* inner = pool.take(3, false);
  EXPECT_EQ(pool.workers(), 6);
  pool.give_back(inner);
  pool.give_back(large);
  EXPECT_EQ(pool.workers(), 4);
}

TEST(TeamPool, HandsOnItsTeamsInOrder) {
  TeamPool pool(2);
  std::atomic<int> inside{0}, most{0};
  on_threads(6, [&](int) {
    for (int run = 0; run < 200; ++run) {
      WorkerTeam* team = pool.take(3, true);
      int now = ++inside, was = most;
      while (now > was && !most.compare_exchange_weak(was, now)) continue;
      for (int i = 0; i < 20; ++i) std::this_thread::yield();  // the others may take theirs
      --inside;
      pool.give_back(team);
    }
  });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(pool.workers(), 2);
}

TEST(TeamPool, SaysWhereNoThreadIsToBeHad) {
  constexpr int kWanted = 29;  // as no other test does
  const auto run = [&](std::atomic<int>& calls) {
    return run_with_team(kWanted, [&] {
#pragma omp parallel
      ++calls;
      return Status();
    });
  };
  std::atomic<int> calls{0};
  for (const int left : {0, 3}) {
    threads_left = left;
    const Status status = run(calls);
    threads_left = -1;
    EXPECT_EQ(status.code(), ErrorCode::kInternal);
    EXPECT_THAT(status.to_string(),
                HasSubstr("a team of 29 threads cannot be had: the system gives"));
    EXPECT_EQ(calls, 0);
  }
  // Regions outside of a run have the threads that there are.
  threads_left = 0;
  {
    const TeamScope scope(kWanted);
#pragma omp parallel
    ++calls;
  }
  threads_left = -1;
  EXPECT_GE(calls, 1);
  EXPECT_LT(calls, kWanted);
  calls = 0;
  EXPECT_TRUE(run(calls).ok());
  EXPECT_EQ(calls, kWanted);
}

}  // namespace
}  // namespace collage
