// Rewriting a function so that each chosen sub-graph becomes a call of a Primitive function: what
// `collage partition` prints, and what lowering starts from.
//
//   %0 = fn (%p0: …, Primitive=1, Compiler="onednn", global_symbol="collage_onednn_nn_conv2d_add")
//        { … };
//   %1 = %0(%x);
#pragma once

#include <span>

#include "base/result.h"
#include "partition/candidate.h"

namespace collage {

// `kernels` are disjoint (views and projections excepted) and depend on one another without a
// cycle; they may be given in any order. Calls outside all of them stay as they are. Symbols are
// unique within the function.
Result<Function> partition_function(const DataflowGraph& graph,
                                    std::span<const CandidatePartition* const> kernels);

}  // namespace collage
