// Quiet moments of a shared machine. Where another guest runs on the other half of a core, what
// computes takes up to twice as long, for milliseconds to minutes, and the clock does not show it;
// where one uses the memory, what streams does; where our cores are moved apart, what they hand one
// another. Timing waits for moments in which none of it is so, as long as there is patience.
#pragma once

#include <deque>
#include <mutex>

#include "measure/core_probe.h"
#include "measure/probe.h"
#include "runtime/thread_team.h"

namespace collage {

// Tells quiet moments from others by what it has seen: `value` is larger than usual in the latter.
// Usual is what a tenth of the latest values is below, so that one that is far too small changes
// nothing, or less where that is known.
class OutlierGate {
 public:
  explicit OutlierGate(double tolerance) : tolerance_(tolerance) {}
  bool is_quiet(double value);
  // 0 while it has seen too little to tell.
  double usual() const;
  void know(double usual) { known_ = usual; }

 private:
  double tolerance_, known_ = 0;
  std::deque<double> latest_;
};

// What a process knows of the machine's noise, and the time it may still wait for quiet: as long as
// it times, and so many seconds more as are allowed. Whoever times is handed one; one thread uses
// it at a time.
class NoiseGate {
 public:
  void allow(double seconds) { allowed_ = seconds; }
  bool has_patience() const { return waited_ < timed_ + allowed_; }
  void waited(double seconds) { waited_ += seconds; }
  void timed(double seconds) { timed_ += seconds; }

  // Whether the cores are quiet, by what it has seen of them; what is usual of them, and what is
  // known of that.
  bool is_quiet(const CoreState& state);
  CoreState usual() const;
  void know(const CoreState& usual);
  // Whether they are at this moment, by threads of the moment.
  bool is_quiet_now(int threads);
  // Waits for it, as long as there is patience.
  void await(int threads);

  // Of what has run for so long, after a moment that was quiet or was not: whether it counts. False
  // only where there is patience to run it again.
  bool counts(double seconds, bool was_quiet);
  // The same, by the cores of this moment. `team`: null where its threads should not be woken; then
  // this core speaks for all.
  bool is_kept(double seconds, ThreadTeam* team);

  // What the probes around measurements took lately.
  ProbeHistory& probes() { return probes_; }

 private:
  double allowed_ = 0, waited_ = 0, timed_ = 0;
  OutlierGate contention_{1.2};
  OutlierGate core_to_core_{4};  // apart they are where a line takes several times as long
  ProbeHistory probes_;
};

// Held by whoever measures: threads that compile at once take turns, since one would disturb the
// other's figures.
std::unique_lock<std::mutex> turn_to_measure();

}  // namespace collage
