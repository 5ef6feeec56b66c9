// After the search: a schedule that a schedule search found was the fastest of many in isolation,
// which flatters it. Where the best cover uses some, the best one by schedules that targets list is
// one more that is timed end to end.
#pragma once

#include "choose/cover_search.h"

namespace collage {

// The search with "listed schedules" behind its covers; as it was where its best cover uses nothing
// else. `estimator` answers from `costs`.
Result<CoverSearch> with_listed_cover(const DataflowGraph& graph, CoverSearch search,
                                      MeasuredCosts& costs, CostEstimator& estimator,
                                      const std::vector<PartitionSpecPtr>& specs,
                                      const std::vector<std::vector<size_t>>& sets);

}  // namespace collage
