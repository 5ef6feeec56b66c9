// Detects quiet moments of a shared machine. If another guest runs on the other half of a core,
// computing takes up to twice as long, for milliseconds to minutes, and the clock does not show it;
// if it uses the memory, streaming slows down; if our cores are moved apart, so does communication
// between them. Timing waits for moments without these, within a time limit.
#pragma once

#include <deque>
#include <mutex>

#include "measure/core_probe.h"
#include "measure/probe.h"
#include "runtime/thread_team.h"

namespace collage {

// Detects outliers: a value is quiet if it is at most `tolerance` times the 10th percentile of the
// latest values (so that one that is far too small changes nothing), or of a known smaller value.
class OutlierGate {
 public:
  explicit OutlierGate(double tolerance) : tolerance_(tolerance) {}
  bool is_quiet(double value);
  // Returns 0 while it has seen too few values.
  double usual() const;
  void know(double usual) { known_ = usual; }

 private:
  double tolerance_, known_ = 0;
  std::deque<double> latest_;
};

// The observed noise of the machine, and the time left for waiting: as long as timing takes, plus a
// fixed number of seconds. Code that times gets one; one thread uses it at a time.
class NoiseGate {
 public:
  void allow(double seconds) { allowed_ = seconds; }
  bool has_time_left() const { return waited_ < timed_ + allowed_; }
  void waited(double seconds) { waited_ += seconds; }
  void timed(double seconds) { timed_ += seconds; }

  // Returns whether the cores are quiet, by what was observed; the usual state, and setting a known
  // one.
  bool is_quiet(const CoreState& state);
  CoreState usual() const;
  void know(const CoreState& usual);
  // Returns whether they are quiet now, probed by temporary threads.
  bool is_quiet_now(int threads);
  // Waits for that within the time left.
  void await(int threads);

  // Returns whether a sample is kept that took `seconds` and began in a quiet moment or not. False
  // only if there is time left to repeat it.
  bool counts(double seconds, bool was_quiet);
  // Does the same, with a probe now. `team`: null if its threads should stay asleep; then only this
  // core is probed.
  bool is_kept(double seconds, ThreadTeam* team);

  // Recent probes around measurements.
  ProbeHistory& probes() { return probes_; }

 private:
  double allowed_ = 0, waited_ = 0, timed_ = 0;
  OutlierGate contention_{1.2};
  OutlierGate core_to_core_{4};  // apart they are where a line takes several times as long
  ProbeHistory probes_;
};

// Held while measuring: threads that compile at once measure one after the other, since one would
// disturb the other's figures.
std::unique_lock<std::mutex> turn_to_measure();

}  // namespace collage
