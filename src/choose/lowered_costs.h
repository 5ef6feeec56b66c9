// What lowered kernels cost, and what they err by.
#pragma once

#include "choose/costing.h"

namespace collage {

// The candidates with the lowered variants of their functions behind the others. `progress` may be
// null.
Result<std::vector<CostedCandidate>> with_lowered_variants(
    const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
    MeasuredCosts& costs, Progress* progress);

}  // namespace collage
