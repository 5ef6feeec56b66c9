#include "choose/in_situ_costs.h"

#include <algorithm>
#include <optional>

#include "base/stopwatch.h"

namespace collage {

namespace {

// Between two timed kernels of a run the others take so long, about, but there are no more of them.
constexpr double kApart = 0.5e-3;
constexpr double kLargestStride = 16;

}  // namespace

InSituCosts::InSituCosts(Executor& executor, int threads, CacheState cache, NoiseGate& gate)
    : executor_(executor),
      team_(threads),
      sampler_(team_, cache, gate),
      outputs_(executor.plan().outputs.size()),
      samples_(executor.plan().steps.size()) {}

TimedKernel InSituCosts::timed(size_t step, const KernelArgs& args) const {
  const Plan& plan = executor_.plan();
  const Step& known = plan.steps[step];
  TimedKernel kernel{known.kernel.get(), {}, {}, {}};
  for (size_t i = 0; i < known.inputs.size(); ++i) {
    const Buffer& buffer = plan.buffers[known.inputs[i]];
    // What no kernel writes is not written before it is read.
    const bool written = buffer.place != Buffer::Place::kConstant &&
                         buffer.place != Buffer::Place::kInput &&
                         is_host_memory(buffer.encoding.device);
    kernel.inputs.push_back({args.inputs[i], written ? buffer.bytes : 0});
  }
  for (size_t i = 0; i < known.outputs.size(); ++i)
    kernel.outputs.push_back({args.outputs[i], plan.buffers[known.outputs[i]].bytes});
  kernel.workspace = {args.workspace, known.kernel->workspace_bytes()};
  return kernel;
}

Status InSituCosts::look(std::span<const Tensor> inputs) {
  if (stride_ == 0) {
    TRY(executor_.run(inputs, outputs_));
    const Stopwatch watch;
    TRY(executor_.run(inputs, outputs_));
    const double kernel =
        watch.seconds() / static_cast<double>(std::max<size_t>(1, samples_.size()));
    stride_ = static_cast<size_t>(std::clamp(kApart / kernel, 1.0, kLargestStride));
  }
  for (size_t first = 0; first < stride_; ++first) TRY(run(inputs, first));
  return {};
}

Status InSituCosts::run(std::span<const Tensor> inputs, size_t first) {
  std::optional<TimedKernel> before;
  return executor_.walk(inputs, outputs_, [&](size_t step, const KernelArgs& args) -> Status {
    const TimedKernel kernel = timed(step, args);
    if (step % stride_ == first) {
      // Its own inputs are still there: what overwrites them is not before this kernel.
      const bool again = before && before->kernel->thread_use() == kernel.kernel->thread_use();
      samples_[step].push_back(TRY(sampler_.sample(kernel, again ? &*before : nullptr)));
    } else {
      TRY(sampler_.run(kernel));
    }
    before = kernel;
    return {};
  });
}

Interval InSituCosts::interval() const {
  std::vector<double> sums;
  for (const std::vector<double>& samples : samples_) {
    sums.resize(samples.size());
    for (size_t look = 0; look < samples.size(); ++look) sums[look] += samples[look];
  }
  return median_interval(sums);
}

double InSituCosts::seconds() const {
  double sum = 0;
  for (const std::vector<double>& samples : samples_) sum += summarise(samples).seconds();
  return sum;
}

}  // namespace collage
