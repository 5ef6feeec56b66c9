// What the kernels of a plan cost at this moment, each alone: timed as for the cost database
// (cost/timing.h), one after the other as the plan has them, on what they read in a run and where
// it lies: the kernel before, where it uses the same threads, runs once more, untimed, and so
// leaves it in the caches of those cores that it does in a run. Machines change their pace between
// tuning and running; what these figures add up to is what costs of this moment predict.
#pragma once

#include <span>
#include <vector>

#include "cost/timing.h"
#include "runtime/executor.h"

namespace collage {

class FreshCosts {
 public:
  // The executor must outlive it.
  FreshCosts(Executor& executor, int threads, CacheState cache, double patience);

  // One more sample of every kernel.
  Status look(std::span<const Tensor> inputs);
  // What the search would add up, dispatch included and switches between thread pools not. There
  // was a look before.
  double seconds() const;

 private:
  TimedKernel timed(size_t step, const KernelArgs& args) const;

  Executor& executor_;
  ThreadTeam team_;
  Sampler sampler_;
  std::vector<Tensor> outputs_;
  std::vector<std::vector<double>> samples_;  // seconds of each step
};

}  // namespace collage
