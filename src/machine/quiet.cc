#include "machine/quiet.h"

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
QuietGate& handover_gate() {
  static QuietGate gate(4);
  return gate;
}
QuietGate& core_gate() {
  static QuietGate gate(1.2);
  return gate;
}

}  // namespace

bool QuietGate::is_quiet(double value) {
  constexpr size_t kLength = 256;
  std::lock_guard lock(mutex_);
  latest_.push_back(value);
  if (latest_.size() > kLength) latest_.pop_front();
  double usual = percentile({latest_.begin(), latest_.end()}, kQuietPart);
  if (known_ > 0) usual = std::min(usual, known_);
  return value <= tolerance_ * usual;
}

double QuietGate::usual() const {
  constexpr size_t kEnough = 40;
  std::lock_guard lock(mutex_);
  return latest_.size() < kEnough ? 0 : percentile({latest_.begin(), latest_.end()}, kQuietPart);
}

void QuietGate::know(double usual) {
  std::lock_guard lock(mutex_);
  known_ = usual;
}

bool is_quiet(const CoreState& state) {
  const bool near = state.handover == 0 || handover_gate().is_quiet(state.handover);
  return core_gate().is_quiet(state.crowding) && near;
}

CoreState usual_cores() { return {core_gate().usual(), handover_gate().usual()}; }

void know_usual_cores(const CoreState& usual) {
  core_gate().know(usual.crowding);
  handover_gate().know(usual.handover);
}

std::unique_lock<std::mutex> turn_to_measure() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

bool Quiet::is_now(int threads) {
  return is_quiet(state_of_cores(threads, [&](auto&& body) { run_on_new_threads(threads, body); }));
}

void Quiet::await(int threads) {
  Stopwatch since;
  while (!is_now(threads) && patience_.is_left()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    patience_.waited(since.restart());
  }
}

bool Quiet::counts(double seconds, bool was_quiet) {
  if (was_quiet || !patience_.is_left()) {
    patience_.timed(seconds);
    return true;
  }
  patience_.waited(seconds);
  return false;
}

bool Quiet::is_kept(double seconds, ThreadTeam* team) {
  const CoreState state = team == nullptr
                              ? CoreState{core_crowding(), 0}
                              : state_of_cores(team->size(), [&](auto&& body) { team->run(body); });
  return counts(seconds, is_quiet(state));
}

Quiet& Quiet::here() {
  static Quiet quiet;
  return quiet;
}

}  // namespace collage
