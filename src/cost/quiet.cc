#include "cost/quiet.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "base/stopwatch.h"

namespace collage {

namespace {

using Four = float __attribute__((vector_size(16)));
constexpr int kRounds = 1000;
constexpr double kQuietPart = 0.1;  // of all moments, at least
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

// The largest of so many threads, on which `everywhere` runs a function of their number.
template <typename Everywhere>
double crowding_of_cores(int threads, Everywhere&& everywhere) {
  std::vector<double> each(static_cast<size_t>(threads));
  everywhere([&](int thread) { each[static_cast<size_t>(thread)] = core_crowding(); });
  return *std::max_element(each.begin(), each.end());
}

}  // namespace

double core_crowding() {
  // An interruption makes a time longer, never shorter.
  const double dependent = std::min(dependent_seconds(), dependent_seconds());
  return std::min(independent_seconds(), independent_seconds()) / dependent;
}

bool QuietGate::is_quiet(double value) {
  constexpr size_t kLength = 256;
  latest_.push_back(value);
  if (latest_.size() > kLength) latest_.pop_front();
  double usual = percentile({latest_.begin(), latest_.end()}, kQuietPart);
  if (known_ > 0) usual = std::min(usual, known_);
  return value <= tolerance_ * usual;
}

double QuietGate::usual() const {
  constexpr size_t kEnough = 40;
  return latest_.size() < kEnough ? 0 : percentile({latest_.begin(), latest_.end()}, kQuietPart);
}

QuietGate& core_gate() {
  static QuietGate gate(1.2);
  return gate;
}

QuietGate& memory_gate() {
  static QuietGate gate(1.35);
  return gate;
}

void Quiet::await(int threads) {
  const auto crowding = [&] {
    return crowding_of_cores(threads, [&](auto&& body) { run_on_new_threads(threads, body); });
  };
  Stopwatch since;
  while (!core_gate().is_quiet(crowding()) && patience_.is_left()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    patience_.waited(since.restart());
  }
}

bool Quiet::is_kept(double seconds, ThreadTeam* team) {
  const double crowding =
      team == nullptr ? core_crowding()
                      : crowding_of_cores(team->size(), [&](auto&& body) { team->run(body); });
  if (core_gate().is_quiet(crowding) || !patience_.is_left()) {
    patience_.timed(seconds);
    return true;
  }
  patience_.waited(seconds);
  return false;
}

Quiet& Quiet::here() {
  static Quiet quiet;
  return quiet;
}

}  // namespace collage
