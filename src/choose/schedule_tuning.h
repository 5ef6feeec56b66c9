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

// Of one function on one target: the fastest schedule of the space found where it is faster than
// all of `known` in the same encodings, which were measured before. Times at most `most` variants.
Result<std::optional<MeasuredVariant>> faster_schedule(const Function& function,
                                                       const Target& target, ScheduleSpace space,
                                                       const TargetCosts& known, size_t most,
                                                       MeasuredCosts& costs, Effort effort);

// Searches for the kernels of the covers, and for what would replace one of them alone, where no
// search was before; the longest first, and none that takes less than a hundredth of the cheapest
// cover. `found` is what the covers are in terms of; what is found goes to those of `candidates`
// that share the costs. Whether anything changed.
Result<bool> tune_schedules(const std::vector<NamedCover>& covers,
                            const std::vector<CostedCandidate>& found,
                            std::vector<CostedCandidate>& candidates, const CompileOptions& compile,
                            MeasuredCosts& costs, Effort effort, Progress* progress);

}  // namespace collage
