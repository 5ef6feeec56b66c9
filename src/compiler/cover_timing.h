// Timing whole covers end to end, challenger against champion: two programs alive at a time, blocks
// of runs with a pause between them, so that the idle threads of one do not disturb the other.
#pragma once

#include <vector>

#include "cost/cost.h"
#include "runtime/executor.h"

namespace collage {

struct CoverTimings {
  Measured champion, challenger;
};

struct BlockOptions {
  int blocks = 3;
  int runs_per_block = 20;
  double seconds_per_block = 0.4;  // fewer runs when one takes long (at least 2)
  int warm_ups = 2;
  int pause_ms = 50;
};

// Both get the same inputs.
Result<CoverTimings> time_against(Executor& champion, Executor& challenger,
                                  std::span<const Tensor> inputs, const BlockOptions& options = {});
Result<Measured> time_alone(Executor& executor, std::span<const Tensor> inputs,
                            const BlockOptions& options = {});
// One block: `warm_ups` untimed runs, then the seconds of each timed one.
Status run_block(Executor& executor, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                 const BlockOptions& options, std::vector<double>& samples);
Measured summarise(const std::vector<double>& samples);

}  // namespace collage
