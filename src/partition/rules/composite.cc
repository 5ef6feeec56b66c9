#include "partition/rules/composite.h"

namespace collage {

std::vector<CandidatePartition> CompositePartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result = rule_->all_candidates(graph, spec);
  for (CandidatePartition& candidate : result) {
    candidate.sub_graph = candidate.sub_graph.labelled(graph, name());
    candidate.rule_name = name();
  }
  return result;
}

}  // namespace collage
