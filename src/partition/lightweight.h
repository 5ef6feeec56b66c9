// Partitions without a search, for one toolchain, as FuseOps and the partition_for_<toolchain>
// functions of other compilers do.
#pragma once

#include <functional>
#include <vector>

#include "partition/candidate.h"

namespace collage {

// Chooses candidates greedily, in the order of their targets: the largest that fit with those
// chosen before, by operator calls, earlier ones first; those with an anchor before those without,
// since others fuse around it. The host's fill the rest, so the result covers all that the
// candidates do. In dataflow order. `accept`, if given, is called just before a candidate is
// chosen; a refused one is skipped, so smaller ones take its place.
std::vector<CandidatePartition> partition_lightly(
    const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
    const std::function<bool(const CandidatePartition&)>& accept = nullptr);

}  // namespace collage
