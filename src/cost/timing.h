// Timing rival kernels in one process, interleaved, in the cache state they meet in a model.
//
// Cold, for models whose weights and activations do not fit the private caches: before each sample
// everything is evicted from the private caches, then the inputs are written again by the threads,
// each its part, because that is what the kernel before did; constants, workspace and outputs are
// cold. Warm, for small models: runs follow one another.
//
// What biases it: other load on the machine (drift is shared by rivals since rounds are
// interleaved), and an eviction that reaches the private caches surely but a very large shared
// cache only in part, as in a real model.
#pragma once

#include <atomic>
#include <vector>

#include "cost/cost.h"
#include "runtime/kernel.h"
#include "runtime/thread_team.h"

namespace collage {

struct TimedKernel {
  Kernel* kernel = nullptr;
  std::vector<void*> inputs, outputs;
  std::vector<size_t> input_bytes;
  void* workspace = nullptr;
};

struct TimingOptions {
  int min_rounds = 8;
  int max_rounds = 40;
  double seconds_per_kernel = 0.06;     // budget; min_rounds overrides it
  double max_seconds_per_kernel = 1.5;  // overrides min_rounds (but never fewer than 3)
  double batch_seconds = 200e-6;        // warm runs are batched until one sample lasts this long
  bool cold = true;                     // one run a sample, after an eviction
  // Where somebody watches (see MeasureHooks): the kernel that runs, and a count of batches.
  std::atomic<int32_t>* running = nullptr;
  std::atomic<uint32_t>* beats = nullptr;
};

// One result a kernel, in order; an error is that kernel's alone. The kernels have run successfully
// once before (verification). Their outputs are overwritten.
std::vector<Result<Measured>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                           const TimingOptions& options);

}  // namespace collage
