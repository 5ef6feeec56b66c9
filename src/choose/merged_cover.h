// After the search: touching kernels of one toolchain become one, where it accepts anything joined
// with anything (PartitionSpec::merges). By mock costs that always wins; of measured ones nobody
// knows, so the merged kernels are measured, and the merged cover is one more that is timed end to
// end: it stays where it is faster.
#pragma once

#include "choose/cover_search.h"

namespace collage {

// The search with "NAME merged" behind its best cover in which anything can be merged, and the
// candidates that one needs; as it was if no merged kernel works or, with frozen costs, something
// of it was never measured.
Result<CoverSearch> with_merged_cover(const DataflowGraph& graph, CoverSearch search,
                                      MeasuredCosts& costs, const VariantDemands& demands);

}  // namespace collage
