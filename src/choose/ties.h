// Costs that cannot be told apart. Of kernels that do the same, one is measured to be the fastest,
// and where others take as long that is luck: the next measurement finds another. So of those that
// are not surely slower than it the one that is declared first is searched at its figure: targets
// in their order, of each the variants in the order of its backend. Then noise decides nothing, and
// the same model gets the same plan.
//
// Kernels do the same where they have equal nodes, take and give them in equal encodings, and err
// by as much. One is surely slower if it is so by more than two standard errors of the difference,
// or by a tenth; variants of one target were timed in turns, so what differs from moment to moment
// does not count.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "choose/costing.h"
#include "search/problem.h"

namespace collage {

// By candidate and variant: the seconds by which the search is told less than the figure.
using Understated = std::map<std::pair<size_t, size_t>, double>;

// `problem` is that of the candidates. The host's and what nobody measured take no part.
Understated settle_ties(const std::vector<CostedCandidate>& candidates, SearchProblem& problem);

}  // namespace collage
