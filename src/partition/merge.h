// After the search: touching kernels of one target become one, where the target accepts that
// (PartitionSpec::merges) and no kernels then wait for one another. Merged kernels may have several
// exits. Tuples and projections between them are taken along, and views that no kernel holds.
#pragma once

#include <vector>

#include "partition/candidate.h"

namespace collage {

// `kernels` are disjoint, the whole cover; the result too, in dataflow order.
std::vector<CandidatePartition> merge_touching(const DataflowGraph& graph,
                                               std::vector<CandidatePartition> kernels);

}  // namespace collage
