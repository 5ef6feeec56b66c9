// PartitionRule: finds sub-graphs that may become kernels. Base rules look at the dataflow graph;
// combinators make larger candidates from those of other rules. Results may overlap; the search
// chooses. Rules are immutable and may be shared.
//
// A rule gives sub-graphs that are valid for its documented limits, each inside set once, in
// ascending order of the highest node inside; where it would go on but for a limit of depth, size
// or number, what it stopped at is marked (CandidatePartition::truncated), since the cheapest cover
// may be better with what it did not give. Every tuple that a call inside takes is inside too,
// so that only tensors flow in.
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

// The candidates of a spec's rule.
inline std::vector<CandidatePartition> all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) {
  return spec->rule->all_candidates(graph, spec);
}

// `inside` with the tuples that its calls take.
IndexSet with_tuple_arguments(const DataflowGraph& graph, IndexSet inside);

}  // namespace collage
