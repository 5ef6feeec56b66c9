// Timing kernels one by one in the midst of others, as choose/in_situ_costs.h does.
#pragma once

#include <memory>

#include "measure/noise_gate.h"
#include "measure/timing.h"

namespace collage {

// Takes single samples of kernels amid other ones. Constants are as cold as those leave them:
// kStreaming is kCold here, and nothing passes through shared caches. As in a program, idle threads
// of one pool may still spin when a kernel of another begins.
class Sampler {
 public:
  // What is given must outlive it.
  Sampler(ThreadTeam& team, CacheState cache, NoiseGate& gate);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  // Seconds of one run, which leaves outputs as that does. `before`, or null: what runs right
  // before it, on the same threads, once more: it leaves inputs where a program's kernels find
  // them.
  Result<double> sample(const TimedKernel& kernel, const TimedKernel* before);
  // One run between samples.
  Status run(const TimedKernel& kernel);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collage
