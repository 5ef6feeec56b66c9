// Kernels of a cover run one after the other, so none may wait, over others, for itself. Convex
// kernels with several exits can: {a, d} needs b of {b, e}, which needs a.
#pragma once

#include <vector>

#include "partition/sub_graph.h"

namespace collage {

// Whether a path leaves `kernel` and comes back, where entering another kernel means coming out at
// all of its exits. `owner`: by node, the kernel that holds it, or null; what it says of nodes
// inside `kernel` does not matter.
bool waits_for_itself(const DataflowGraph& graph, const SubGraph& kernel,
                      const std::vector<const SubGraph*>& owner);

}  // namespace collage
