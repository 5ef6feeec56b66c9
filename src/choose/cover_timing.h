// Timing whole programs in blocks of runs with a pause behind each, so that the idle threads of one
// do not disturb the next.
#pragma once

#include <vector>

#include "measure/noise_gate.h"
#include "runtime/executor.h"

namespace collage {

struct BlockOptions {
  int runs_per_block = 20;
  double seconds_per_block = 0.4;  // fewer runs when one takes long
  int least_runs = 2;
  int warm_ups = 2;  // one, where a run takes longer than a block
  int pause_ms = 50;
  NoiseGate* gate = nullptr;  // not null: what it does not keep is run again
};

// One block: `warm_ups` untimed runs, then the seconds of each timed one.
Status run_block(Executor& executor, std::span<const Tensor> inputs, std::vector<Tensor>& outputs,
                 const BlockOptions& options, std::vector<double>& samples);

}  // namespace collage
