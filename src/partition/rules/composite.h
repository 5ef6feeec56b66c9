// CompositePartitionRule: labels the candidates of another rule with this rule's name, so that they
// are extracted as a function with that "Composite" attribute.
#pragma once

#include "partition/rules/rule.h"

namespace collage {

class CompositePartitionRule : public PartitionRule {
 public:
  CompositePartitionRule(std::string label, PartitionRulePtr rule)
      : PartitionRule(std::move(label)), rule_(std::move(rule)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  PartitionRulePtr rule_;
};

}  // namespace collage
