// Prunes candidates: where only larger and smaller kernels of one toolchain compete, the largest is
// best, so the smaller ones need no estimate.
//
// Kept are the candidates that lie in no other one of their target, and, if two kept ones overlap,
// the largest ones (of each target) of what either leaves to the other; repeatedly until nothing is
// added. Two targets that can take the same region whole thus leave two candidates; a target that
// can take a piece in the middle leaves the pieces on both sides too.
//
// If costs grow ever more slowly with each further operator of a kernel, as mock costs do, the
// cheapest cover is among the kept candidates; with measured costs that is only likely.
#pragma once

#include <vector>

#include "partition/candidate.h"

namespace collage {

std::vector<CandidatePartition> prune_candidates(const DataflowGraph& graph,
                                                 std::vector<CandidatePartition> candidates);

// Returns whether the project generates its kernels itself and they are element-wise: a larger one
// is then never slower than its parts, since one pass over memory replaces several by the same
// generator. Nothing is known of other kernels.
bool fusion_never_loses(const CandidatePartition& candidate);

// Prunes where costs are measured, and a larger kernel may be slower: a candidate is dropped only
// if it lies in a larger one of its target whose fusion never loses, and no other target but the
// host has a candidate that touches that one. What a remaining candidate leaves over of such a
// region is kept as above. Nothing is lost if the cost of such a kernel grows evenly with its
// operators, as memory traffic does. `pruned` receives the dropped ones, for use if the kernel that
// contains them is invalid.
std::vector<CandidatePartition> prune_dominated(const DataflowGraph& graph,
                                                std::vector<CandidatePartition> candidates,
                                                std::vector<CandidatePartition>& pruned);

}  // namespace collage
