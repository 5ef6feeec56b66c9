#include "machine/noise_gate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/statistics.h"
#include "base/stopwatch.h"

namespace collage {

namespace {

constexpr double kQuietPart = 0.1;  // of all moments, at least

// `everywhere` runs a function of their number on so many threads.
template <typename Everywhere>
CoreState state_of_cores(int threads, Everywhere&& everywhere) {
  CoreProbe probe(threads);
  everywhere([&](int thread) { probe.look(thread); });
  return probe.state();
}

// Apart the cores are where a line takes several times as long.
OutlierGate& core_to_core_gate() {
  static OutlierGate gate(4);
  return gate;
}
OutlierGate& core_gate() {
  static OutlierGate gate(1.2);
  return gate;
}

}  // namespace

bool OutlierGate::is_quiet(double value) {
  constexpr size_t kLength = 256;
  std::lock_guard lock(mutex_);
  latest_.push_back(value);
  if (latest_.size() > kLength) latest_.pop_front();
  double usual = percentile({latest_.begin(), latest_.end()}, kQuietPart);
  if (known_ > 0) usual = std::min(usual, known_);
  return value <= tolerance_ * usual;
}

double OutlierGate::usual() const {
  constexpr size_t kEnough = 40;
  std::lock_guard lock(mutex_);
  return latest_.size() < kEnough ? 0 : percentile({latest_.begin(), latest_.end()}, kQuietPart);
}

void OutlierGate::know(double usual) {
  std::lock_guard lock(mutex_);
  known_ = usual;
}

bool is_quiet(const CoreState& state) {
  const bool near = state.core_to_core == 0 || core_to_core_gate().is_quiet(state.core_to_core);
  return core_gate().is_quiet(state.contention) && near;
}

CoreState usual_cores() { return {core_gate().usual(), core_to_core_gate().usual()}; }

void know_usual_cores(const CoreState& usual) {
  core_gate().know(usual.contention);
  core_to_core_gate().know(usual.core_to_core);
}

std::unique_lock<std::mutex> turn_to_measure() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

bool NoiseGate::is_now(int threads) {
  return is_quiet(state_of_cores(threads, [&](auto&& body) { run_on_new_threads(threads, body); }));
}

void NoiseGate::await(int threads) {
  Stopwatch since;
  while (!is_now(threads) && patience_.is_left()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    patience_.waited(since.restart());
  }
}

bool NoiseGate::counts(double seconds, bool was_quiet) {
  if (was_quiet || !patience_.is_left()) {
    patience_.timed(seconds);
    return true;
  }
  patience_.waited(seconds);
  return false;
}

bool NoiseGate::is_kept(double seconds, ThreadTeam* team) {
  const CoreState state = team == nullptr
                              ? CoreState{core_contention(), 0}
                              : state_of_cores(team->size(), [&](auto&& body) { team->run(body); });
  return counts(seconds, is_quiet(state));
}

NoiseGate& NoiseGate::here() {
  static NoiseGate gate;
  return gate;
}

}  // namespace collage
