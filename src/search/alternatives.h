// Covers next to the best one: the best that forbid one of its kernels. Predictions err by more
// than near ties differ, so the first few covers are timed end to end.
#pragma once

#include <vector>

#include "search/potentials.h"

namespace collage::search {

// What makes two covers different: which nodes are one kernel, and on which target. Sorted.
using Signature = std::vector<std::pair<std::vector<uint32_t>, Target>>;
Signature signature(const CompactProblem& compact, const Cover& cover);

// Up to `count` covers, cheapest first, that differ from `best` and from one another.
std::vector<Cover> near_best(const CompactProblem& compact, const Potentials& potentials,
                             const std::vector<uint32_t>& order, const Cover& best, size_t count,
                             size_t& states);

}  // namespace collage::search
