#include "choose/cover_timing.h"

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
  constexpr double kLook = 1e-3;  // it costs some 10 µs to see whether it was quiet
  ThreadTeam* const team = executor.team();
  double unseen = 0;
  size_t seen = samples.size();  // so many are kept
  for (int i = 0;
       i < options.runs_per_block && (i < options.least_runs || spent < options.seconds_per_block);
       ++i) {
    samples.push_back(TRY(timed_run()));
    spent += samples.back();
    unseen += samples.back();
    const bool last = i + 1 == options.runs_per_block;
    if (options.gate == nullptr || (unseen < kLook && !last)) continue;
    if (!options.gate->is_kept(unseen, team)) {
      i -= static_cast<int>(samples.size() - seen);
      spent -= unseen;
      samples.resize(seen);
    }
    seen = samples.size();
    unseen = 0;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(options.pause_ms));
  return {};
}

}  // namespace collage
