// HostPartitionRule: what the host of last resort takes: every call that needs a kernel, alone,
// whether of an operator or of a function already marked Primitive.
#pragma once

#include "partition/rules/rule.h"

namespace collage {

class HostPartitionRule : public PartitionRule {
 public:
  explicit HostPartitionRule(std::string name = "host") : PartitionRule(std::move(name)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;
};

}  // namespace collage
