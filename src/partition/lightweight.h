// Partitioning without a search, where the toolchain is already determined: what FuseOps and the
// partition_for_<toolchain> functions of other compilers do.
#pragma once

#include <span>
#include <vector>

#include "partition/candidate.h"

namespace collage {

// Of the candidates, in the order of their targets: the largest that fit with those chosen before,
// by operator calls, earlier ones first. The host's fill what is left over, so the result covers
// all that the candidates do. In dataflow order.
std::vector<CandidatePartition> partition_lightly(const DataflowGraph& graph,
                                                  std::vector<CandidatePartition> candidates);

}  // namespace collage
