#include "partition/rules/union_rule.h"

#include <unordered_set>

#include "partition/candidate_order.h"

namespace collage {

std::vector<CandidatePartition> UnionPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  std::unordered_set<IndexSet, IndexSetHash> seen;
  for (const PartitionRulePtr& rule : rules_)
    for (CandidatePartition& candidate : rule->all_candidates(graph, spec))
      if (seen.insert(candidate.sub_graph.inside()).second) result.push_back(std::move(candidate));
  sort_by_last_node(result);
  return result;
}

}  // namespace collage
