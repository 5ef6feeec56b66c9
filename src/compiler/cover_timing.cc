#include "compiler/cover_timing.h"

#include <chrono>
#include <thread>

#include "base/stopwatch.h"

namespace collage {

Status run_block(Executor& executor, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                 const BlockOptions& options, std::vector<double>& samples) {
  outputs.resize(executor.plan().outputs.size());
  auto timed_run = [&]() -> Result<double> {
    const Stopwatch watch;
    TRY(executor.run(inputs, outputs));
    return watch.seconds();
  };
  double spent = 0;
  for (int i = 0; i < options.warm_ups && spent < options.seconds_per_block; ++i)
    spent += TRY(timed_run());
  spent = 0;
  for (int i = 0; i < options.runs_per_block && (i < 2 || spent < options.seconds_per_block); ++i) {
    samples.push_back(TRY(timed_run()));
    spent += samples.back();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(options.pause_ms));
  return {};
}

}  // namespace collage
