#include "measure/core_probe.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "base/stopwatch.h"

namespace collage {

namespace {

using Four = float __attribute__((vector_size(16)));
constexpr int kRounds = 1000;
constexpr Four kFactor{0.999f, 0.999f, 0.999f, 0.999f}, kAddend{0.001f, 0.001f, 0.001f, 0.001f};

double dependent_seconds() {
  Four x = kFactor;
  const Stopwatch watch;
  for (int i = 0; i < kRounds; ++i) {
    x = x * kFactor + kAddend;
    asm volatile("" : "+x"(x));
  }
  return watch.seconds();
}

// Twelve chains, more than the latencies of a multiplication and an addition: they fill the units.
// No array, which would be in memory.
double independent_seconds() {
  Four a = kFactor, b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a, l = a;
  const auto step = [](Four& x) { x = x * kFactor + kAddend; };
  const Stopwatch watch;
  for (int round = 0; round < kRounds; ++round) {
    step(a), step(b), step(c), step(d), step(e), step(f);
    step(g), step(h), step(i), step(j), step(k), step(l);
    asm volatile(""
                 : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(f), "+x"(g), "+x"(h), "+x"(i),
                   "+x"(j), "+x"(k), "+x"(l));
  }
  return watch.seconds();
}

constexpr int64_t kAbandoned = -1;

}  // namespace

double core_contention() {
  // An interruption makes a time longer, never shorter.
  const double dependent = std::min(dependent_seconds(), dependent_seconds());
  return std::min(independent_seconds(), independent_seconds()) / dependent;
}

void CoreProbe::look(int thread) {
  contention_[static_cast<size_t>(thread)] = core_contention();
  if (contention_.size() > 1) hand_over(thread);
}

CoreState CoreProbe::state() const {
  return {*std::max_element(contention_.begin(), contention_.end()), core_to_core_};
}

// A turn goes round, from each thread to the next.
void CoreProbe::hand_over(int64_t thread) {
  constexpr int64_t kLaps = 16, kTries = 4;  // in the first of which threads arrive
  const auto threads = static_cast<int64_t>(contention_.size());
  double least = std::numeric_limits<double>::infinity();
  Stopwatch since;
  for (int64_t lap = 0; lap < kTries * kLaps; ++lap) {
    if (!await_turn(lap * threads + thread)) return;
    if (lap % kLaps == 0) {
      const double seconds = since.restart();
      if (lap > kLaps) least = std::min(least, seconds);
    }
    turn_.store(lap * threads + thread + 1, std::memory_order_release);
  }
  if (thread == 0) core_to_core_ = least / static_cast<double>(kLaps * threads);
}

bool CoreProbe::await_turn(int64_t turn) {
  constexpr double kLongest = 3e-4;  // for a thread that does not run
  const Stopwatch since;
  for (int i = 1;; ++i) {
    const int64_t now = turn_.load(std::memory_order_acquire);
    if (now == turn) return true;
    if (now == kAbandoned) return false;
    if (i % 1024 != 0) continue;
    if (since.seconds() > kLongest) break;
    std::this_thread::yield();  // where both are on one core
  }
  turn_.store(kAbandoned, std::memory_order_release);
  return false;
}

}  // namespace collage
