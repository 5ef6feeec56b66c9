#include "measure/noise_gate.h"

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

}  // namespace

bool OutlierGate::is_quiet(double value) {
  constexpr size_t kLength = 256;
  latest_.push_back(value);
  if (latest_.size() > kLength) latest_.pop_front();
  double usual = percentile({latest_.begin(), latest_.end()}, kQuietPart);
  if (known_ > 0) usual = std::min(usual, known_);
  return value <= tolerance_ * usual;
}

double OutlierGate::usual() const {
  constexpr size_t kEnough = 40;
  return latest_.size() < kEnough ? 0 : percentile({latest_.begin(), latest_.end()}, kQuietPart);
}

bool NoiseGate::is_quiet(const CoreState& state) {
  const bool near = state.core_to_core == 0 || core_to_core_.is_quiet(state.core_to_core);
  return contention_.is_quiet(state.contention) && near;
}

CoreState NoiseGate::usual() const { return {contention_.usual(), core_to_core_.usual()}; }

void NoiseGate::know(const CoreState& usual) {
  contention_.know(usual.contention);
  core_to_core_.know(usual.core_to_core);
}

bool NoiseGate::is_quiet_now(int threads) {
  return is_quiet(state_of_cores(threads, [&](auto&& body) { run_on_new_threads(threads, body); }));
}

void NoiseGate::await(int threads) {
  Stopwatch since;
  while (!is_quiet_now(threads) && has_time_left()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    waited(since.restart());
  }
}

bool NoiseGate::counts(double seconds, bool was_quiet) {
  if (was_quiet || !has_time_left()) {
    timed(seconds);
    return true;
  }
  waited(seconds);
  return false;
}

bool NoiseGate::is_kept(double seconds, ThreadTeam* team) {
  const CoreState state = team == nullptr
                              ? CoreState{core_contention(), 0}
                              : state_of_cores(team->size(), [&](auto&& body) { team->run(body); });
  return counts(seconds, is_quiet(state));
}

std::unique_lock<std::mutex> turn_to_measure() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

}  // namespace collage
