// DFPatternPartitionRule: a candidate for every sub-graph that a pattern and a predicate accept,
// for pattern-based backends.
#pragma once

#include <functional>

#include "ir/matcher.h"
#include "partition/rules/rule.h"

namespace collage {

using MatchPredicate = std::function<bool(const Match&)>;

class DFPatternPartitionRule : public PartitionRule {
 public:
  // Without a predicate every match is taken. Matches that are invalid (not convex, or outside
  // `config`) are dropped: with the default, an inner value used elsewhere is a second exit.
  DFPatternPartitionRule(std::string name, DFPattern pattern, MatchPredicate predicate = {},
                         SubGraphConfig config = {})
      : PartitionRule(std::move(name)),
        pattern_(std::move(pattern)),
        predicate_(std::move(predicate)),
        config_(config) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override;

 private:
  DFPattern pattern_;
  MatchPredicate predicate_;
  SubGraphConfig config_;
};

}  // namespace collage
