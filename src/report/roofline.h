// What the machine can do at most, measured here and now, and the shortest time that a kernel can
// take by it: the roofline model (Williams, Waterman and Patterson, 2009) with a roof for every
// unit that multiplies and for every cache (Ilic, Pratas and Sousa, 2014).
//
// A time below it is a mistake of this model, or of its peaks, and no result:
// bench/check_roofs.py looks for them.
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
  // Of other units, as far as there are such: "bfloat16", "int16", "int8" (LeastWork::unit), alike.
  std::map<std::string, double> unit_operations_per_second = {};
  // The smallest and fastest first, memory last. Empty where there was no memory for buffers.
  std::vector<MemoryLevel> levels = {};
};

// Takes about three seconds. The team must be otherwise idle.
MachinePeaks measure_peaks(ThreadTeam& team);

// Where memory is shared with other guests its rate may halve for minutes: what was seen of it
// while costs were measured counts too. Faster levels are no slower.
void raise_memory_peak(MachinePeaks& peaks, double bytes_per_second);

struct Roof {
  double seconds = 0;  // no kernel that does this work can take less
  std::string bound;   // what takes as long: a unit or a level
};

// Bytes of the constants of a model whose kernels these are, each tensor once.
double model_constant_bytes(std::span<const ReportedKernel> kernels);

// `model_constants`: bytes of the constants of the model in which the kernel runs. In a run all of
// them pass before its own are read again, so a cache keeps at most that part of them for which it
// has room. Activations were written just before, so they are in the fastest levels that hold
// them. What comes from one level passes all that are faster.
Roof roof_of(const MachinePeaks& peaks, const LeastWork& work, double model_constants);

}  // namespace collage
