// Timing rival kernels in one process, interleaved, in the cache state they meet in a model:
// activations warm, because the previous kernel just wrote them; constants cold when they are
// large, because the rest of the model's weights streamed by since.
//
// What biases it: other load on the machine (drift is shared by rivals since rounds are
// interleaved), and, for cold kernels, an eviction that reaches the private caches surely but a
// very large shared cache only in part, as in a real model.
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
  double batch_seconds = 200e-6;        // runs are batched until one sample lasts this long
  size_t cold_bytes = 64 << 10;         // constants above this are measured cold, one run a sample
  // Where somebody watches (see MeasureHooks): the kernel that runs, and a count of batches.
  std::atomic<int32_t>* running = nullptr;
  std::atomic<uint32_t>* beats = nullptr;
};

// One result a kernel, in order; an error is that kernel's alone. The kernels have run successfully
// once before (verification). Their outputs are overwritten.
std::vector<Result<Measured>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                           const TimingOptions& options);

}  // namespace collage
