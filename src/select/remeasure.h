// Remeasurement of costs that decide. Timing is noisy, and a search picks the luckiest of many
// figures: three kernels beat the one that does their work because a neighbour disturbed that one
// for a second. So what a cover consists of is timed again at another moment, and so is what could
// stand in the place of several of its kernels and costs about as much as they do.
#pragma once

#include <vector>

#include "cover/cover_search.h"
#include "select/choose_cover.h"

namespace collage {

// A candidate's variant, by number.
struct CandidateVariant {
  size_t candidate, variant;
};

// The kernels of the cover, then rivals: of each candidate that computes what several kernels do
// together, or what one does in the other precision, and costs at most a little more, the cheapest
// variant; and whatever would cost less but for what disturbed it while it was timed.
std::vector<CandidateVariant> worth_remeasuring(const NamedCover& cover,
                                                const std::vector<CostedCandidate>& candidates);

// Times those of that precision that were measured in this run once more, so often at most; what
// both figures say counts (of_two_measurements), and who fails now is invalid. `found` is what the
// cover is in terms of; what changed goes to those of `candidates` that share the costs (and is in
// the database for those that have none yet). Whether anything changed.
Result<bool> remeasure(const NamedCover& cover, const std::vector<CostedCandidate>& found,
                       std::vector<CostedCandidate>& candidates, MeasuredCosts& costs,
                       MeasuredCosts::Precision precision, Progress* progress, int most_times = 1);

// Whether a cover took so much less than its kernels that these must have been timed in a disturbed
// minute.
bool looks_disturbed(const TimedCover& cover);

// How often covers are searched with new figures, each time with what is new measured once more.
inline constexpr int kMostRemeasurements = 3;

}  // namespace collage
