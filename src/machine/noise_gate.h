// Quiet moments of a shared machine. Where another guest runs on the other half of a core, what
// computes takes up to twice as long, for milliseconds to minutes, and the clock does not show it;
// where one uses the memory, what streams does; where our cores are moved apart, what they hand one
// another. Timing waits for moments in which none of it is so.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "machine/core_probe.h"
#include "runtime/thread_team.h"

namespace collage {

// Accounts for waiting: on a machine that is never quiet timing may take twice as long, and so many
// seconds more as are allowed.
class Patience {
 public:
  void allow(double seconds) { allowed_ = seconds; }
  void waited(double seconds) { waited_ += seconds; }
  void timed(double seconds) { timed_ += seconds; }
  bool is_left() const { return waited_ < timed_ + allowed_; }

 private:
  std::atomic<double> allowed_{0}, waited_{0}, timed_{0};
};

// Tells quiet moments from others by what this process has seen: `value` is larger than usual in
// the latter. Usual is what a tenth of the latest values is below, so that one that is far too
// small changes nothing, or less where that is known.
class OutlierGate {
 public:
  explicit OutlierGate(double tolerance) : tolerance_(tolerance) {}
  bool is_quiet(double value);
  // 0 while it has seen too little to tell.
  double usual() const;
  void know(double usual);

 private:
  mutable std::mutex mutex_;  // of all below: the process has one gate
  double tolerance_, known_ = 0;
  std::deque<double> latest_;
};

// Whether the cores are, by what this process has seen of them; what is usual of them, and what is
// known of that.
bool is_quiet(const CoreState& state);
CoreState usual_cores();
void know_usual_cores(const CoreState& usual);

// Held by whoever measures: threads that compile at once take turns, since one would disturb the
// other's figures.
std::unique_lock<std::mutex> turn_to_measure();

// Whether programs that this process runs are undisturbed at the moment, by the state of the cores.
class NoiseGate {
 public:
  void allow(double seconds) { patience_.allow(seconds); }
  // Waits for it, as long as there is patience.
  void await(int threads);
  // After something has run for so long: whether it still is. False only where there is patience to
  // run it again. `team`: null where its threads should not be woken; then this core speaks for
  // all.
  bool is_kept(double seconds, ThreadTeam* team);
  // The same of what ran elsewhere, in two steps: whether it is at this moment, by threads of the
  // moment, and whether seconds count in which it was or was not.
  static bool is_now(int threads);
  bool counts(double seconds, bool was_quiet);

  // That of the process.
  static NoiseGate& here();

 private:
  Patience patience_;
};

}  // namespace collage
