// Partitions without a search, for one toolchain, as FuseOps and the partition_for_<toolchain>
// functions of other compilers do.
#pragma once

#include <functional>
#include <vector>

#include "partition/candidate.h"

namespace collage {

// Chooses candidates greedily: the largest that fit with those chosen before, by operator calls,
// earlier ones first; those with an anchor before those without, since others fuse around it. Specs
// of lower `rank` (default: all but the host) choose before the others, so the host's fill the
// rest, and the result covers all that the candidates do. In dataflow order. `accept`, if given, is
// called just before a candidate is chosen; a refused one is skipped, so smaller ones take its
// place.
std::vector<CandidatePartition> partition_lightly(
    const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
    const std::function<bool(const CandidatePartition&)>& accept = nullptr,
    const std::function<int(const PartitionSpec&)>& rank = nullptr);

}  // namespace collage
