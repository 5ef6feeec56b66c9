#include "partition/rules/union_rule.h"

#include <algorithm>
#include <unordered_set>

namespace collage {

std::vector<CandidatePartition> UnionPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  std::unordered_set<IndexSet, IndexSetHash> seen;
  for (const PartitionRulePtr& rule : rules_)
    for (CandidatePartition& candidate : rule->all_candidates(graph, spec))
      if (seen.insert(candidate.sub_graph.inside()).second) result.push_back(std::move(candidate));
  std::stable_sort(result.begin(), result.end(),
                   [](const CandidatePartition& a, const CandidatePartition& b) {
                     return a.sub_graph.inside().last() < b.sub_graph.inside().last();
                   });
  return result;
}

}  // namespace collage
