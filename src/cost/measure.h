// Measuring one task inside this process: enumerate variants, compile them, verify each against the
// reference, time the survivors interleaved. Runs inside a worker (worker.h); a crash here is the
// worker's, never the compiler's.
#pragma once

#include <functional>

#include "cost/task.h"

namespace collage {

// Called with "target" or "target|variant" before anything that may crash on its account.
using Announce = std::function<void(const std::string& subject)>;

// One entry a target, in the task's order. Every target is answered: with costs or with a refusal.
Result<std::vector<TargetCosts>> measure_function(const MeasureTask& task,
                                                  const Announce& announce);
// The cheapest backend's conversion: target is its name, one variant "convert".
Result<std::vector<TargetCosts>> measure_conversion(const MeasureTask& task,
                                                    const Announce& announce);

}  // namespace collage
