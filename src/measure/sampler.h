// Timing kernels one by one in the midst of others, as choose/in_situ_costs.h does.
#pragma once

#include <memory>

#include "measure/noise_gate.h"
#include "measure/timing.h"

namespace collage {

// Takes single samples of kernels between other ones. Constants are as cold as those leave them:
// kStreaming is kCold here, and nothing passes through shared caches. As in a program, idle threads
// of one pool may still spin when a kernel of another begins.
class Sampler {
 public:
  // References must stay valid for the lifetime of this object.
  Sampler(ThreadTeam& team, CacheState cache, NoiseGate& gate);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  // Returns the seconds of one run, which writes outputs as any run does. `before`, or null: the
  // kernel before it in the program, which runs once more on the same threads, so that inputs lie
  // where a program's kernels find them.
  Result<double> sample(const TimedKernel& kernel, const TimedKernel* before);
  // Runs a kernel between samples.
  Status run(const TimedKernel& kernel);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collage
