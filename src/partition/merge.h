// Merges touching kernels of one target after the search, if the target accepts that
// (PartitionSpec::merges) and no kernels then wait for one another. Merged kernels may have several
// exits. They include tuples and projections between them, and views that no kernel holds.
#pragma once

#include <vector>

#include "partition/candidate.h"

namespace collage {

// `kernels` are disjoint, the whole cover, as is the result, in dataflow order.
std::vector<CandidatePartition> merge_touching(const DataflowGraph& graph,
                                               std::vector<CandidatePartition> kernels);

}  // namespace collage
