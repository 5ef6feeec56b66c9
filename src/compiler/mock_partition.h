// Partitions with mock costs (cost/mock_costs.h): candidates, pruning, search, merging and
// rewriting as with measured ones, but nothing is compiled or measured and constants need no
// values.
#pragma once

#include <memory>
#include <vector>

#include "choose/cover_search.h"
#include "compiler/compile.h"
#include "compiler/listed_partition.h"
#include "partition/config.h"

namespace collage {

// Partition of its functions that are not Primitive. Calls that no target takes stay the host's.
struct MockPartition : ListedPartition {
  // The search of @main, where asked for. One unit of cost is taken for a millisecond.
  CoverSearch search;
  std::shared_ptr<const DataflowGraph> graph;
};

// kUsage: more kernels than max_estimates would be asked for.
Result<MockPartition> partition_with_mock_costs(const Module& module, const PartitionConfig& config,
                                                bool keep_search = false);
// Makes the report of a search as that of a compilation.
CompileReport report_of(const MockPartition& partition, const PartitionConfig& config);

}  // namespace collage
