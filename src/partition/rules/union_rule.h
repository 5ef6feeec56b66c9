// UnionPartitionRule: the candidates of all its rules. If two rules return the same nodes, the
// earlier one's candidate stays.
#pragma once

#include "partition/rules/rule.h"

namespace collage {

class UnionPartitionRule : public PartitionRule {
 public:
  UnionPartitionRule(std::string name, std::vector<PartitionRulePtr> rules)
      : PartitionRule(std::move(name)), rules_(std::move(rules)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  std::vector<PartitionRulePtr> rules_;
};

}  // namespace collage
