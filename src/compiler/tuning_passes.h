// Tuning as passes over a module, to be run among other passes (as TVM Unity's TaskExtraction and
// ApplyHistoryBest): the first says what is worth measuring, the second rewrites the module by what
// was measured. Between them tasks are tuned: here by `collage tune`, or by whoever fills the
// database.
#pragma once

#include <collage/collage.h>

#include <vector>

#include "choose/tuning_task.h"
#include "passes/pass.h"

namespace collage {

// Appends to `tasks` what compiling @main with these options needs the costs of; `unknown` tells
// which of them are not in the database. The module stays as it is.
Pass task_extraction(const ProgramOptions& options, std::vector<TuningTask>& tasks);

// Partitions @main as the cover that was timed fastest or, where none was timed, as the one the
// costs predict to be: kernels are stated (partition/stated_kernels.h). Measures nothing and
// compiles nothing: kFrozenCosts where a cost is missing. A module that is partitioned whole
// already is not changed.
Pass apply_history_best(const ProgramOptions& options);

}  // namespace collage
