// A module whose functions were partitioned, each by itself, with a list of its kernels, for
// `collage partition` where nothing is measured.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/targets/targets.h"
#include "ir/module.h"
#include "partition/candidate.h"

namespace collage {

struct ListedPartition {
  struct Kernel {
    std::string name, target;
    std::vector<std::pair<std::string, PostDfsIndex>> calls;  // operators, in dataflow order
    double cost = 0;
  };
  Module module;
  std::string costs;  // what kernels were chosen by: "mock" or "none"
  // Kernels of all functions, in dataflow order. A target's calls that stay calls are kernels too.
  std::vector<Kernel> kernels;
  std::vector<std::string> host;  // operators that no target takes
  double cost = 0;                // of what the search chose, before merging
  size_t candidates = 0, truncated = 0, kept = 0, estimates = 0;
};

// Lists kernels that were written into a module under these names, in their order.
std::vector<ListedPartition::Kernel> list_kernels(const DataflowGraph& graph,
                                                  const std::vector<CandidatePartition>& kernels,
                                                  const std::vector<std::string>& names);

// Partitions every function without a search (partition/lightweight.h), for specs with one
// toolchain besides the host. The host's operators are kernels too.
Result<ListedPartition> partition_without_costs(const Module& module,
                                                const std::vector<PartitionSpecPtr>& specs);

}  // namespace collage
