// Tuning of schedules, between costs and the choice by the clock: for kernels that covers use, and
// that could have other schedules than the handful which is measured in any case, a search times
// some of these (cost/schedule_search.h). What it finds is one more variant of theirs, kept in the
// database, and covers are found anew.
#pragma once

#include <cstddef>
#include <vector>

#include "choose/cover_search.h"

namespace collage {

// Variants that a search may time for one function; 0: it does not search.
size_t most_schedules(Effort effort);

// Searches for the kernels of the covers, and for what would replace one of them alone, where no
// search was before; the longest first, and none that takes less than a hundredth of the cheapest
// cover. Returns whether anything was found.
Result<bool> tune_schedules(const std::vector<NamedCover>& covers,
                            std::vector<CostedCandidate>& candidates, const CompileOptions& compile,
                            MeasuredCosts& costs, Effort effort, Progress* progress);

}  // namespace collage
