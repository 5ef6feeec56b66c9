// Covers whose kernels run on several devices at a time. The search adds up kernels and
// conversions, which is the time of a program that does one thing after the other. This simulates
// covers as the executor runs them (device_steps.h), by the same costs.
#pragma once

#include "search/device_steps.h"
#include "search/search.h"

namespace collage {

// Returns the cover's kernels and conversions, in its order; launch penalties count.
std::vector<DeviceStep> device_steps(const SearchProblem& problem, const Cover& cover);

// Returns the cover's time if its devices compute side by side: at most cover.seconds.
double overlapped_seconds(const SearchProblem& problem, const Cover& cover);

// Searches a cover that takes less time so than `cover`, though its sum may be larger: whole
// branches of the graph are moved to other devices one after the other, as long as that gains. No
// cover: nothing was found, or there is one device. Counts and seconds are of all searches made for
// it.
SearchResult cover_side_by_side(const SearchProblem& problem, Cover cover);

}  // namespace collage
