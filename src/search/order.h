// Dataflow orders of a problem's nodes for the scan, which is fastest where few tensors are live.
#pragma once

#include <vector>

#include "search/compact.h"

namespace collage::search {

// Depth first from the results, of several inputs the deepest first, so that a short branch is
// decided just before it joins a long one.
std::vector<uint32_t> narrow_order(const CompactProblem& compact);

// An order in which each of some disjoint node sets is contiguous, as close as possible to `base`;
// empty when they wait for one another.
std::vector<uint32_t> contracted_order(const CompactProblem& compact,
                                       const std::vector<uint32_t>& base,
                                       const std::vector<std::vector<uint32_t>>& regions);

}  // namespace collage::search
