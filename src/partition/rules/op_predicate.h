// OpPredicatePartitionRule: a candidate for every operator call that a predicate accepts, alone
// (with the tuples it takes), for whole-sub-graph backends.
#pragma once

#include <functional>

#include "partition/rules/rule.h"

namespace collage {

using CallPredicate = std::function<bool(const CallNode&)>;

class OpPredicatePartitionRule : public PartitionRule {
 public:
  OpPredicatePartitionRule(std::string name, CallPredicate predicate)
      : PartitionRule(std::move(name)), predicate_(std::move(predicate)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  CallPredicate predicate_;
};

}  // namespace collage
