#include "partition/rules/only_valid.h"

#include <algorithm>

namespace collage {

std::vector<CandidatePartition> OnlyValidPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  std::vector<std::vector<IndexSet>> too_large(graph.size());  // by node
  const SubGraphConfig no_limits{0, 0, true};
  for (CandidatePartition& candidate : rule_->all_candidates(graph, spec)) {
    const SubGraph& sub_graph = candidate.sub_graph;
    if (sub_graph.is_valid(graph, config_)) {
      result.push_back(std::move(candidate));
    } else if (sub_graph.is_valid(graph, no_limits)) {
      sub_graph.inside().for_each(
          [&](PostDfsIndex i) { too_large[i].push_back(sub_graph.inside()); });
    }
  }
  for (CandidatePartition& candidate : result) {
    const IndexSet& inside = candidate.sub_graph.inside();
    const std::vector<IndexSet>& larger = too_large[inside.first()];
    candidate.truncated |= std::any_of(larger.begin(), larger.end(), [&](const IndexSet& other) {
      return inside.is_subset_of(other);
    });
  }
  return result;
}

}  // namespace collage
