// Timing rival kernels in one process, interleaved, in the cache state they meet in a model.
//
// Cold, for models whose weights and activations do not fit the private caches: before each sample
// everything is evicted from them, then the inputs are written again by the threads, each its part,
// because that is what the kernel before did; constants, workspace and outputs are cold. Streaming,
// for models whose weights do not fit the shared cache either: constants come from memory. Warm,
// for small models: runs follow one another.
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

struct TimedBuffer {
  void* data = nullptr;
  size_t bytes = 0;
};

struct TimedKernel {
  Kernel* kernel = nullptr;
  std::vector<TimedBuffer> inputs, outputs;
  TimedBuffer workspace;
};

struct TimingOptions {
  int min_rounds = 8;
  int max_rounds = 40;
  double seconds_per_kernel = 0.06;     // budget; min_rounds overrides it
  double max_seconds_per_kernel = 1.5;  // overrides min_rounds (but never fewer than 3)
  double batch_seconds = 200e-6;        // warm runs are batched until one sample lasts this long
  CacheState cache = CacheState::kStreaming;  // but for kWarm: one run a sample
  // Where somebody watches (see MeasureHooks): the kernel that runs, and a count of batches.
  std::atomic<int32_t>* running = nullptr;
  std::atomic<uint32_t>* beats = nullptr;
};

// One result a kernel, in order; an error inside is that kernel's alone. The kernels have run
// successfully once before (verification). Their outputs are overwritten.
Result<std::vector<Result<Measured>>> time_kernels(std::vector<TimedKernel>& kernels,
                                                   ThreadTeam& team, const TimingOptions& options);

}  // namespace collage
