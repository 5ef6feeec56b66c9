// Remeasurement of costs that decide. Timing is noisy, and a search picks the luckiest of many
// figures: three kernels beat the one that does their work because a neighbour disturbed that one
// for a second. So figures of which a cover depends get blocks at other moments (measure/blocks.h)
// until two agree, and the covers are found anew.
#pragma once

#include <compare>
#include <vector>

#include "choose/cover_search.h"

namespace collage {

// A candidate's variant, by number.
struct CandidateVariant {
  size_t candidate, variant;
  auto operator<=>(const CandidateVariant&) const = default;
};

// Of the figures that decide about any of these covers those that need one more block. These decide
// about a cover: its kernels'; of each candidate that computes what several of them do together, or
// what one does under the other limit of rounding, the cheapest variant's, if its interval reaches
// theirs; and whatever would cost less but for what disturbed it. They need a block while no two
// agree, up to three blocks. Of candidates that share their costs one is listed.
std::vector<CandidateVariant> worth_remeasuring(const std::vector<NamedCover>& covers,
                                                const std::vector<CostedCandidate>& candidates);

// Times those that decide about any of the covers, of that limit, that were measured in this run,
// once more. A variant that fails now becomes Invalid. Returns whether a cost changed.
Result<bool> remeasure(const std::vector<NamedCover>& covers,
                       std::vector<CostedCandidate>& candidates, MeasuredCosts& costs,
                       RoundingLimit rounding, Progress* progress);

// How often covers are found with new figures at most.
inline constexpr int kMostRemeasurements = 3;

}  // namespace collage
