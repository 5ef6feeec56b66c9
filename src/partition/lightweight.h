// Partitioning without a search, where the toolchain is already determined: what FuseOps and the
// partition_for_<toolchain> functions of other compilers do.
#pragma once

#include <functional>
#include <vector>

#include "partition/candidate.h"

namespace collage {

// Of the candidates, in the order of their targets: the largest that fit with those chosen before,
// by operator calls, earlier ones first; those with an anchor before those without, as others fuse
// around it. The host's fill what is left over, so the result covers
// all that the candidates do. In dataflow order. `accept`, where given, is asked of a candidate
// just before it is chosen; a refused one is passed over, so smaller ones take its place.
std::vector<CandidatePartition> partition_lightly(
    const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
    const std::function<bool(const CandidatePartition&)>& accept = nullptr);

}  // namespace collage
