// PartitionRule: finds sub-graphs that may become kernels. Base rules inspect the dataflow graph;
// combinators make larger candidates from those of other rules. Results may overlap; the search
// chooses. Rules are immutable and may be shared.
//
// A rule returns sub-graphs that are valid within its documented limits, each inside set once, in
// ascending order of the highest node inside. A candidate that a limit of depth, size or number
// stopped is marked (CandidatePartition::truncated), since the cheapest cover may need a larger
// one. Every tuple that a call inside takes is inside too, so that only tensors flow in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "partition/candidate.h"

namespace collage {

class PartitionRule {
 public:
  explicit PartitionRule(std::string name) : name_(std::move(name)) {}
  virtual ~PartitionRule() = default;
  const std::string& name() const { return name_; }
  virtual std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const = 0;

 private:
  std::string name_;
};

using PartitionRulePtr = std::shared_ptr<const PartitionRule>;

// Returns the candidates of a spec's rule.
inline std::vector<CandidatePartition> all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) {
  return spec->rule->all_candidates(graph, spec);
}

// Returns `inside` with the tuples that its calls take.
IndexSet with_tuple_arguments(const DataflowGraph& graph, IndexSet inside);

}  // namespace collage
