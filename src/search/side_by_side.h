// Covers whose kernels run on several devices at a time. The search adds up what kernels and
// conversions take, which is what a program takes where one thing is done after the other. Here
// covers are run as the executor runs them (device_steps.h), by the same costs.
#pragma once

#include "search/device_steps.h"
#include "search/search.h"

namespace collage {

// The cover's kernels and conversions, in its order; launch penalties count.
std::vector<DeviceStep> device_steps(const SearchProblem& problem, const Cover& cover);

// What the cover takes where its devices compute side by side: no more than cover.seconds.
double overlapped_seconds(const SearchProblem& problem, const Cover& cover);

// A cover that takes less than `cover` so, though it may add up to more: whole branches of the
// graph are moved to other devices one after the other, as long as that gains. No cover: nothing
// was found, or there is one device. Counts and seconds are of all searches made for it.
SearchResult cover_side_by_side(const SearchProblem& problem, Cover cover);

}  // namespace collage
