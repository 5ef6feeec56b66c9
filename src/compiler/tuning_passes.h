// Tuning as passes over a module, to be run among other passes (as TVM Unity's TaskExtraction and
// ApplyHistoryBest): the first lists what is worth measuring, the second rewrites the module by
// what was measured. Between them tasks are tuned: by `collage tune`, or by another program that
// fills the database.
#pragma once

#include <collage/collage.h>

#include <vector>

#include "choose/tuning_task.h"
#include "cost/measured_costs.h"
#include "passes/pass.h"

namespace collage {

// Appends to `tasks` the functions whose costs compiling @main with these options needs; `unknown`
// marks those that are not in the database. The module stays unchanged.
Pass task_extraction(const ProgramOptions& options, std::vector<TuningTask>& tasks);

// Compiles the kernels that measuring @main may need, for caches of code, and measures nothing: for
// machines that measure what others built. Adds to `built`. The module stays unchanged.
Pass kernel_building(const ProgramOptions& options, MeasuredCosts::Built& built);

// Makes each call in @main of a tensor program in whose name the filter is found the kernel that is
// fastest where the program is a model of its own, stated with its schedule as apply_history_best
// does. Measures what is not known.
Pass tune(const std::string& filter, const ProgramOptions& options);

// Partitions @main by the cover that was timed fastest or, if none was timed, by the one of least
// predicted cost; kernels are stated (partition/stated_kernels.h), and tensor programs get the
// schedules that were found (program_schedules.h). Measures nothing and compiles
// nothing: kFrozenCosts if a cost is missing. A module that is partitioned whole already is not
// changed.
Pass apply_history_best(const ProgramOptions& options);

}  // namespace collage
