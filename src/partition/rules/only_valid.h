// OnlyValidPartitionRule: the candidates of another rule that are valid within some limits. A
// candidate inside one that exceeds the limits is marked as truncated.
#pragma once

#include "partition/rules/rule.h"

namespace collage {

class OnlyValidPartitionRule : public PartitionRule {
 public:
  OnlyValidPartitionRule(std::string name, PartitionRulePtr rule, SubGraphConfig config)
      : PartitionRule(std::move(name)), rule_(std::move(rule)), config_(config) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
  SubGraphConfig config_;
};

}  // namespace collage
