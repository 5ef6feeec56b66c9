// Pruning by lookahead: where nothing but larger and smaller kernels of one choice of toolchain
// compete, the largest will be best, so the smaller ones need not be estimated.
//
// Kept are the candidates that lie in no other one of their target, and, where two that were kept
// overlap, the largest ones (of each target) of what either leaves to the other; and so on until
// nothing is added. Two targets that can take the same region whole thus leave two candidates; a
// target that can take a piece in the middle leaves the pieces on both sides too.
//
// For costs that grow ever more slowly with each operator a kernel takes in (mock costs do) the
// cheapest cover is among what is kept; for measured ones that is likely, no more.
#pragma once

#include <vector>

#include "partition/candidate.h"

namespace collage {

std::vector<CandidatePartition> prune_candidates(const DataflowGraph& graph,
                                                 std::vector<CandidatePartition> candidates);

}  // namespace collage
