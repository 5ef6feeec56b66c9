// Dependences between kernels of a cover. Kernels run one after the other, so none may wait, over
// others, for itself. Convex kernels with several exits can: {a, d} needs b of {b, e}, which needs
// a.
#pragma once

#include <vector>

#include "partition/sub_graph.h"

namespace collage {

// Returns whether a path leaves `kernel` and comes back, where entering another kernel means
// leaving it at all of its exits. `owner`: by node, the kernel that holds it, or null; entries of
// nodes inside `kernel` are ignored.
bool waits_for_itself(const DataflowGraph& graph, const SubGraph& kernel,
                      const std::vector<const SubGraph*>& owner);

}  // namespace collage
