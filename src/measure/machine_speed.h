// How fast this machine is: in a fraction of a second, what scales estimates of kernels that were
// measured on another one (cost/kernel_estimates.h); and what the peaks of a report are measured
// with (report/measure_peaks.cc).
#pragma once

#include <functional>

#include "measure/peak_loops.h"
#include "runtime/thread_team.h"

namespace collage {

// Returns the shortest of some repeats of `body` on every thread of the team, in seconds: what
// disturbs them only makes them slower.
double best_seconds(ThreadTeam& team, const std::function<void(int)>& body);
// Returns those of all threads together, by repeats of so many rounds.
double operations_per_second(ThreadTeam& team, const ArithmeticLoop& loop, int rounds);

// Of all threads together, each a rate a second; 0: not known. Caches are taken to be as fast as
// arithmetic is.
struct MachineSpeed {
  double float32 = 0;  // multiply-adds of the widest vectors, counted as two
  double memory = 0;   // bytes read from memory
};

// Takes at most a second.
MachineSpeed probe_machine(int threads);

}  // namespace collage
