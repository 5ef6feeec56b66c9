// Times rival kernels in one process, interleaved, in the cache state they meet in a model.
//
// Cold, for models whose weights and activations do not fit the private caches: before each sample
// a part of what a model reads passes through the shared cache, everything is evicted from the
// private ones, then the threads write the inputs again, each its part, as the kernel before does;
// constants, workspace and outputs are cold. Streaming, for models whose weights do not fit the
// shared cache either: constants come from memory. Warm, for small models: runs follow one another.
//
// Biases: other load on the machine (rivals share its drift since rounds are interleaved), and an
// eviction that always reaches the private caches but a very large shared cache only in part, as in
// a real model.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/statistics.h"
#include "measure/blocks.h"
#include "measure/effort.h"
#include "measure/noise_gate.h"
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
  size_t rivals = 0;  // kernels of that number compute the same
};

// A kernel's buffers in its encodings.
class TimedArguments {
 public:
  explicit TimedArguments(const TimedKernel& timed) : workspace_(timed.workspace.data) {
    for (const TimedBuffer& buffer : timed.inputs) inputs_.push_back(buffer.data);
    for (const TimedBuffer& buffer : timed.outputs) outputs_.push_back(buffer.data);
  }
  KernelArgs args() const { return {inputs_.data(), outputs_.data(), workspace_}; }

 private:
  std::vector<void*> inputs_, outputs_;
  void* workspace_;
};

// Sampling a kernel ends when its median is known well enough: the confidence interval's half width
// is within `precision` of the median, after `min_rounds`; or when it is far slower than a rival:
// after `hopeless_rounds`, if even its interval's lower end is above `hopeless` times the rival's
// upper end. In any case when its time is spent.
struct TimingOptions {
  static TimingOptions of(Effort effort);
  int min_rounds = 40;
  int max_rounds = 80;
  int hopeless_rounds = 5;
  double hopeless = 1.5;
  double precision = 0.01;
  double seconds_per_kernel = 0.03;  // budget, once there are `least_rounds`
  int least_rounds = 8;
  double max_seconds_per_kernel = 1.5;  // overrides all of these (but never fewer than 3 rounds)
  double batch_seconds = 200e-6;        // warm runs are batched until one sample lasts this long
  CacheState cache = CacheState::kStreaming;  // but for kWarm: one run a sample
  // For observers (see MeasureHooks): the kernel that runs, and a count of batches.
  std::atomic<int32_t>* running = nullptr;
  std::atomic<uint32_t>* beats = nullptr;
};

// Returns a block of each kernel, in order; an error inside is that kernel's alone. The kernels
// have run successfully once before (verification). Their outputs are overwritten.
Result<std::vector<Result<Block>>> time_kernels(std::vector<TimedKernel>& kernels, ThreadTeam& team,
                                                const TimingOptions& options, NoiseGate& gate);

}  // namespace collage
