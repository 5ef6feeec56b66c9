// MaxCoalescePartitionRule: joins touching candidates of another rule greedily into maximal
// regions, as a backend's own partitioner would. The regions are disjoint, and together hold every
// candidate that does not overlap a larger one.
//
// Regions include tuples and projections between joined candidates, and views except at a region's
// boundary, where the host passes them for nothing.
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
