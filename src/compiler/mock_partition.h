// Partitioning with costs that are made up (a configuration's mock_costs): candidates, pruning,
// search, merging and rewriting as for real, but nothing is compiled or measured and constants need
// no values.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/compile.h"
#include "cover/cover_search.h"
#include "ir/module.h"
#include "partition/config.h"
#include "targets/targets.h"

namespace collage {

struct ListedKernel {
  std::string name, target;
  std::vector<std::pair<std::string, PostDfsIndex>> calls;  // operators, in dataflow order
  double cost = 0;
};

// What was searched: for reports. One unit of cost is taken for a millisecond.
struct MockSearch {
  std::shared_ptr<const DataflowGraph> graph;
  std::vector<CostedCandidate> candidates;
  std::vector<NamedCover> covers;  // the cheapest, then the single-backend covers
  double lower_bound_seconds = 0;
  bool exact = false;
  size_t states = 0;
  SearchCounts counts;
};

struct MockPartition {
  Module module;
  std::string costs = "mock";  // what they are: "none" without a search
  // Of all functions, in dataflow order. A target's calls that stay calls are kernels too; what no
  // target takes is the host's.
  std::vector<ListedKernel> kernels;
  std::vector<std::string> host;  // operators that no target takes
  double cost = 0;                // of what the search chose, before merging
  size_t candidates = 0, kept = 0, estimates = 0;
  MockSearch search;  // of @main, where asked for
};

// Every function of the module that is not Primitive is partitioned by itself. Fails (kUsage) when
// more kernels than max_estimates would be asked for.
Result<MockPartition> partition_with_mock_costs(const Module& module, const PartitionConfig& config,
                                                const TargetConstraints& constraints = {},
                                                bool keep_search = false);
// The report of a search that was kept, as that of a compilation.
CompileReport report_of(const MockPartition& partition, const PartitionConfig& config);

// The light partition (partition/lightweight.h) of every function, for specs whose toolchain is
// determined: one of them besides the host. The host's operators are kernels too.
Result<MockPartition> partition_without_costs(const Module& module,
                                              const std::vector<PartitionSpecPtr>& specs,
                                              const TargetConstraints& constraints);

// A file of Relay text as it is, not simplified. Constants that are given by their type only are
// made without values, and `unknown` receives their storage.
Result<Module> load_text_as_is(const std::filesystem::path& path,
                               std::unordered_set<const void*>& unknown);

}  // namespace collage
