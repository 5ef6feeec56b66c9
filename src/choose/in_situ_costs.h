// What the kernels of a plan cost in their place: each timed alone as for the cost database
// (measure/timing.h), but at this moment, on what it reads in a run and where that lies, in the
// midst of the others. In one run of the plan some kernels are timed, far enough apart that what
// pushes their data out of the cores' own caches leaves the shared one to the model; the others
// just run. The kernel before a timed one, where it uses the same threads, runs once more, untimed,
// and so leaves what it wrote in the caches of those cores that it does in a run.
#pragma once

#include <span>
#include <vector>

#include "measure/sampler.h"
#include "runtime/executor.h"

namespace collage {

class InSituCosts {
 public:
  // The executor and the gate must outlive it.
  InSituCosts(Executor& executor, int threads, CacheState cache, NoiseGate& gate);

  // One more sample of every kernel, by as many runs as that takes.
  Status look(std::span<const Tensor> inputs);
  // The sum, without switches between thread pools. There was a look before.
  double seconds() const;
  // That holds the median of a look's sum.
  Interval interval() const;

 private:
  TimedKernel timed(size_t step, const KernelArgs& args) const;
  Status run(std::span<const Tensor> inputs, size_t first);

  Executor& executor_;
  ThreadTeam team_;
  Sampler sampler_;
  size_t stride_ = 0;  // in a run one in so many kernels is timed; 0: not known yet
  std::vector<Tensor> outputs_;
  std::vector<std::vector<double>> samples_;  // seconds of each step
};

}  // namespace collage
