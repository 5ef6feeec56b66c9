#include "partition/rules/only_valid.h"

namespace collage {

std::vector<CandidatePartition> OnlyValidPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result = rule_->all_candidates(graph, spec);
  std::erase_if(result, [&](const CandidatePartition& candidate) {
    return !candidate.sub_graph.is_valid(graph, config_);
  });
  return result;
}

}  // namespace collage
