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

// Whether its kernels are made by the project itself, where a larger element-wise one is never
// slower than those it can be cut into: one pass over memory in place of several, by the same
// generator. Of toolchains, and of anything but element-wise kernels, nobody knows.
bool fusion_never_loses(const CandidatePartition& candidate);

// The same where costs are measured, and a larger kernel may well be slower: a candidate goes only
// if it lies in a larger one of its target whose fusion never loses, and no other target but the
// host has a candidate that touches that one. What a candidate that stays leaves over of such a
// region is kept as above. Nothing is lost where what such a kernel costs grows evenly with its
// operators, as memory traffic does. `pruned` receives the
// others, for when a kernel that stands for them does not work.
std::vector<CandidatePartition> prune_dominated(const DataflowGraph& graph,
                                                std::vector<CandidatePartition> candidates,
                                                std::vector<CandidatePartition>& pruned);

}  // namespace collage
