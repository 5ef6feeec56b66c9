#include "runtime/worker_team.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>

namespace collage {

namespace {

using Clock = std::chrono::steady_clock;

// Waking from a futex takes some 40 µs in a virtual machine, so threads that wait stay awake while
// the next region may begin in a moment. One that another process wants the core of goes to sleep
// early: it is woken in front of that process, but would not get the core back by asking for it.
constexpr auto kSpinning = std::chrono::microseconds(100);
constexpr auto kYielding = std::chrono::microseconds(2000);
constexpr auto kLongYield = std::chrono::microseconds(50);  // somebody else had the core

// States of a worker's index, in the low bits of its signal; above them the number of the region.
enum : uint32_t { kOpen = 0, kTaken = 1, kLeave = 2, kStateBits = 3 };
constexpr uint32_t kRegions = UINT32_MAX >> 2;  // the numbers that fit

}  // namespace

Place& here() {
  thread_local Place place;
  return place;
}

void Signal::wake() {
  if (sleepers_.load() > 0)
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Signal::wait_while(uint32_t value, const std::atomic<bool>* resting) {
  const auto begin = Clock::now();
  auto now = begin;
  const auto is_resting = [&] {
    return resting != nullptr && resting->load(std::memory_order_relaxed);
  };
  while (now - begin < kSpinning && !is_resting()) {
    for (int i = 0; i < 32; ++i) {
      if (this->value() != value) return;
      _mm_pause();
    }
    now = Clock::now();
  }
  while (now - begin < kYielding) {
    if (this->value() != value) return;
    sched_yield();
    const auto before = now;
    now = Clock::now();
    if (now - before > kLongYield) break;
  }
  ++sleepers_;
  while (this->value() == value)
    syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
  --sleepers_;
}

struct alignas(64) WorkerTeam::Worker {
  WorkerTeam* team;
  int index;
  Signal state{kTaken};
  pthread_t thread{};
};

WorkerTeam::WorkerTeam() : workers_(std::make_unique<std::atomic<Worker*>[]>(kMostThreads)) {
  CPU_ZERO(&affinity_);
}

WorkerTeam::~WorkerTeam() {
  resize(1);
  for (int i = 1; i < kMostThreads; ++i) delete workers_[i].load();
}

bool WorkerTeam::start(Worker& worker) {
  worker.state.set(kTaken);
  // Signals are the application's, for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&worker.thread, nullptr, work, &worker) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void WorkerTeam::resize(int size) {
  size = std::clamp(size, 1, kMostThreads);
  while (size_ > size) {
    Worker& last = *workers_[--size_];
    last.state.set(kLeave);
    pthread_join(last.thread, nullptr);
  }
  while (size_ < size) {
    if (workers_[size_] == nullptr) workers_[size_] = new Worker{this, size_};
    if (!start(*workers_[size_])) return;
    CPU_ZERO(&affinity_);  // the new one has another
    ++size_;
  }
}

// Linux may put a thread that is woken on the core of the one that wakes it, and balances that only
// milliseconds later: until then the two take turns, 0.2 ms for each region.
void WorkerTeam::follow_caller(int threads) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (size_ == 1 || pthread_getaffinity_np(pthread_self(), sizeof cores, &cores) != 0) return;
  if (const int own = sched_getcpu(); own >= 0 && CPU_COUNT(&cores) >= std::max(threads, 2))
    CPU_CLR(own, &cores);
  if (CPU_EQUAL(&cores, &affinity_)) return;
  for (int i = 1; i < size_; ++i)
    pthread_setaffinity_np(workers_[i].load()->thread, sizeof cores, &cores);
  affinity_ = cores;
}

Region& WorkerTeam::begin(int count, int threads, Region::Body body, void* data,
                          const TeamLoop& loop) {
  region_.body = body;
  region_.data = data;
  region_.count = std::min(count, size_);
  region_.threads = threads;
  region_.first_loop = loop;
  region_.singles.store(0, std::memory_order_relaxed);
  region_.loop.store(0, std::memory_order_relaxed);
  count_.store(region_.count, std::memory_order_relaxed);
  unfinished_.set(static_cast<uint32_t>(region_.count - 1));
  const uint32_t open = ++regions_ << 2 | kOpen;
  for (int i = 1; i < region_.count; ++i)
    workers_[i].load(std::memory_order_relaxed)->state.set(open);
  return region_;
}

bool WorkerTeam::take(int index, uint32_t region) {
  const uint32_t open = region << 2 | kOpen;
  return workers_[index].load(std::memory_order_relaxed)->state.replace(open, open | kTaken);
}

void WorkerTeam::compute(int index) {
  Place& place = here();
  place.threads = region_.threads;
  place.region = &region_;
  place.index = index;
  place.loops = place.singles = 0;
  place.loop = region_.first_loop;
  region_.body(region_.data);
  unfinished_.count_down();
}

// Indices that nobody has begun. Never those of a later region: its calls may wait for one another,
// and the worker whose index was taken would sleep while the helper's own is left.
void WorkerTeam::help(int own, uint32_t region) {
  const int count = count_.load(std::memory_order_relaxed);
  for (int i = 1; i < count; ++i)
    if (const int index = (own + i) % count; index != 0 && take(index, region)) compute(index);
}

void WorkerTeam::end() {
  help(0, regions_ & kRegions);
  while (const uint32_t left = unfinished_.value()) unfinished_.wait_while(left);
}

void* WorkerTeam::work(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  WorkerTeam& team = *worker.team;
  here().holds_team = true;
  for (;;) {
    const uint32_t state = worker.state.value();
    if ((state & kStateBits) == kLeave) return nullptr;
    if ((state & kStateBits) != kOpen) {
      worker.state.wait_while(state, &team.resting_);
    } else if (const uint32_t region = state >> 2; team.take(worker.index, region)) {
      team.compute(worker.index);
      team.help(worker.index, region);
      here().region = nullptr;
    }
  }
}

}  // namespace collage
