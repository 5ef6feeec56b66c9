// MaxCoalescePartitionRule: joins touching candidates of another rule greedily into the largest
// valid regions: what a backend's own partitioner would take. The regions are disjoint, and
// together hold every candidate that does not overlap a larger one.
//
// Tuples and projections between joined candidates are taken along; so are views, but not at a
// region's boundary, where the host passes them for nothing.
#pragma once

#include "partition/rules/rule.h"

namespace collage {

class MaxCoalescePartitionRule : public PartitionRule {
 public:
  // By default regions have any number of exits, which may be used inside too.
  MaxCoalescePartitionRule(std::string name, PartitionRulePtr rule,
                           SubGraphConfig config = {0, 0, true})
      : PartitionRule(std::move(name)), rule_(std::move(rule)), config_(config) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
  SubGraphConfig config_;
};

}  // namespace collage
