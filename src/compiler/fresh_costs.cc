#include "compiler/fresh_costs.h"

#include <optional>

#include "compiler/cover_problem.h"

namespace collage {

FreshCosts::FreshCosts(Executor& executor, int threads, CacheState cache, double patience)
    : executor_(executor),
      team_(threads),
      sampler_(team_, cache, patience),
      outputs_(executor.plan().outputs.size()),
      samples_(executor.plan().steps.size()) {}

TimedKernel FreshCosts::timed(size_t step, const KernelArgs& args) const {
  const Plan& plan = executor_.plan();
  const Step& known = plan.steps[step];
  TimedKernel kernel{known.kernel.get(), {}, {}, {}};
  for (size_t i = 0; i < known.inputs.size(); ++i) {
    const Buffer& buffer = plan.buffers[known.inputs[i]];
    // What no kernel writes is not written before it is read.
    const bool written =
        buffer.place != Buffer::Place::kConstant && buffer.place != Buffer::Place::kInput;
    kernel.inputs.push_back({args.inputs[i], written ? buffer.bytes : 0});
  }
  for (size_t i = 0; i < known.outputs.size(); ++i)
    kernel.outputs.push_back({args.outputs[i], plan.buffers[known.outputs[i]].bytes});
  kernel.workspace = {args.workspace, known.kernel->workspace_bytes()};
  return kernel;
}

Status FreshCosts::look(std::span<const Tensor> inputs) {
  std::optional<TimedKernel> before;
  return executor_.walk(inputs, outputs_, [&](size_t step, const KernelArgs& args) -> Status {
    const TimedKernel kernel = timed(step, args);
    // Its own inputs are still there: what overwrites them is not before this kernel.
    const bool again = before && before->kernel->thread_use() == kernel.kernel->thread_use();
    samples_[step].push_back(TRY(sampler_.sample(kernel, again ? &*before : nullptr)));
    before = kernel;
    return {};
  });
}

double FreshCosts::seconds() const {
  double sum = 0;
  for (const std::vector<double>& samples : samples_)
    sum += CoverProblem::kLaunchPenalty + summarise(samples).seconds();
  return sum;
}

}  // namespace collage
