// Refinement by measured latency, after the best covers were timed (search/evolution.h):
// generations of covers are bred from those that were fastest, and timed like them. Figures are in
// the database, so the same refinement is replayed without timing anything.
#pragma once

#include "select/choose_cover.h"

namespace collage {

// Times covers, as far as nobody did, and chooses.
using Choose = std::function<Result<ChosenCover>(const std::vector<NamedCover>& covers)>;

// `chosen` is what `choose` says of the covers found, to which all that were bred are added.
Result<ChosenCover> refine_cover(const DataflowGraph& graph, CostEstimator& estimator,
                                 Effort effort, const Choose& choose, ChosenCover chosen,
                                 CoverSearch& found);

}  // namespace collage
