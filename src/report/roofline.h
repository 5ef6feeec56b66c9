// Measures the machine's peaks now, and gives the shortest time that a kernel can take by them: the
// roofline model (Williams, Waterman and Patterson, 2009) with a roof for every unit that
// multiplies and for every cache (Ilic, Pratas and Sousa, 2014).
//
// A time below the roof is an error of this model, or of its peaks: bench/check_roofs.py looks for
// them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "report/least_work.h"
#include "runtime/thread_team.h"

namespace collage {

// A cache, or memory: the caches of all threads' cores together.
struct MemoryLevel {
  std::string name;             // "L1", "L2", "L3", "memory"
  double bytes = 0;             // that it holds; memory: infinity
  double bytes_per_second = 0;  // of reading, writing or copying from it, whichever moves most
};

struct MachinePeaks {
  double flops_per_second = 0;  // fp32 multiply-adds on all threads of the team, counted as two
  // Peaks of other units, if there are any: "bfloat16", "int16", "int8" (LeastWork::unit).
  std::map<std::string, double> unit_operations_per_second = {};
  // The smallest and fastest first, memory last. Empty if there was no memory for buffers.
  std::vector<MemoryLevel> levels = {};
};

// Takes about three seconds. The team must be otherwise idle.
MachinePeaks measure_peaks(ThreadTeam& team);

// Raises memory's peak: its rate may halve for minutes if other guests use it, so what was seen
// while costs were measured counts too. Faster levels are at least as fast.
void raise_memory_peak(MachinePeaks& peaks, double bytes_per_second);

struct Roof {
  double seconds = 0;  // no kernel that does this work can take less
  std::string bound;   // what takes as long: a unit or a level
};

// Returns bytes of the constants of a model with these kernels, each tensor once.
double model_constant_bytes(std::span<const ReportedPlan::Kernel> kernels);

// `model_constants`: bytes of the constants of the model in which the kernel runs. In a run all of
// them pass before its own are read again, so a cache keeps at most that part of them for which it
// has room. Activations were written just before, so they are in the fastest levels that hold them.
// Bytes from one level pass all that are faster.
Roof roof_of(const MachinePeaks& peaks, const LeastWork& work, double model_constants);

}  // namespace collage
