// PartitionRule: finds sub-graphs that may become kernels. Base rules look at the dataflow graph;
// combinators make larger candidates from those of other rules. Results may overlap; the search
// chooses. Rules are immutable and may be shared.
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

}  // namespace collage
