// HostPartitionRule: every call that needs a kernel, alone, whether of an operator or of a function
// already marked Primitive, for the fallback backend.
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
