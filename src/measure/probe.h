// The state of the machine around a measurement: the time of a fixed computation and of a fixed
// stream through memory, and the load of other processes on our cores. It shows which costs were
// disturbed, and makes costs of different minutes comparable.
//
//   Watch watch(threads);
//   … time …
//   Conditions conditions = watch.stop();
#pragma once

#include <deque>

#include "base/stopwatch.h"
#include "measure/core_probe.h"
#include "runtime/thread_team.h"

namespace collage {

// The state of the machine while something was timed.
struct Conditions {
  double compute = 0, bandwidth = 0;  // seconds of the probes, the longer of before and after
  double other_load = 0;              // part of our cores that other processes used
  bool disturbed = false;             // beyond what costs can be trusted with
  CoreState usual = {};               // of the cores in quiet moments (noise_gate.h)
};

// Seconds of the two probes now, on the calling thread: others would disturb what is timed next. A
// few milliseconds in all.
struct ProbeSeconds {
  double compute = 0, bandwidth = 0;
};
ProbeSeconds run_probes();

// Returns seconds a byte that the threads of a team read from memory together now; 0: there was no
// memory for it. The fastest of some passes, about 10 ms.
double seconds_per_memory_byte(ThreadTeam& team);

// CPU seconds since boot of the cores this process may use (others' time included, and time stolen
// from a virtual machine), and this process's own.
struct CpuSeconds {
  double all = 0, own = 0;
};
CpuSeconds read_cpu_seconds();

// Recent probes of this process, which define what is usual. The shortest time would not do: single
// probes are sometimes far below what the machine sustains.
class ProbeHistory {
 public:
  void add(const ProbeSeconds& probe);
  // Returns the first quartile of the latest probes; zeros before the first.
  ProbeSeconds usual() const;
  // Returns whether a probe took so much longer than usual, or others used so much of our cores,
  // that the measurement should be repeated.
  bool is_disturbed(const Conditions& conditions) const;

  static constexpr double kSlowCompute = 1.2, kSlowBandwidth = 1.5, kOtherLoad = 0.15;

 private:
  std::deque<ProbeSeconds> latest_;
};

class Watch {
 public:
  // Adds the probes of this watch to `history`.
  Watch(int threads, ProbeHistory& history);
  Conditions stop();

 private:
  int threads_;
  ProbeHistory& history_;
  ProbeSeconds before_;
  CpuSeconds cpu_;
  Stopwatch stopwatch_;
};

}  // namespace collage
