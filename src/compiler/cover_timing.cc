#include "compiler/cover_timing.h"

#include <chrono>
#include <thread>

#include "base/statistics.h"
#include "base/stopwatch.h"

namespace collage {

Measured summarise(const std::vector<double>& samples) {
  return {median(samples), percentile(samples, 0.1), percentile(samples, 0.9),
          static_cast<int>(samples.size())};
}

Status run_block(Executor& executor, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                 const BlockOptions& options, std::vector<double>& samples) {
  outputs.resize(executor.plan().outputs.size());
  for (int i = 0; i < options.warm_ups; ++i) TRY(executor.run(inputs, outputs));
  double spent = 0;
  for (int i = 0; i < options.runs_per_block && (i < 2 || spent < options.seconds_per_block); ++i) {
    const Stopwatch watch;
    TRY(executor.run(inputs, outputs));
    samples.push_back(watch.seconds());
    spent += samples.back();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(options.pause_ms));
  return {};
}

Result<Measured> time_alone(Executor& executor, std::span<const Tensor> inputs,
                            const BlockOptions& options) {
  std::vector<double> samples;
  std::vector<Tensor> outputs;
  for (int block = 0; block < options.blocks; ++block)
    TRY(run_block(executor, inputs, outputs, options, samples));
  return summarise(samples);
}

Result<CoverTimings> time_against(Executor& champion, Executor& challenger,
                                  std::span<const Tensor> inputs, const BlockOptions& options) {
  std::vector<double> ours, theirs;
  std::vector<Tensor> outputs, other_outputs;
  for (int block = 0; block < options.blocks; ++block) {
    TRY(run_block(champion, inputs, outputs, options, ours));
    TRY(run_block(challenger, inputs, other_outputs, options, theirs));
  }
  return CoverTimings{summarise(ours), summarise(theirs)};
}

}  // namespace collage
