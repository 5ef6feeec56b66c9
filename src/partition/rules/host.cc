#include "partition/rules/host.h"

namespace collage {

std::vector<CandidatePartition> HostPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  for (const DataflowGraph::Node& node : graph.nodes()) {
    if (node_role(node.expr) != NodeRole::kKernel) continue;
    SubGraph sub_graph =
        SubGraph::of(graph, with_tuple_arguments(graph, IndexSet({node.index})), name());
    if (sub_graph.is_valid(graph, {})) result.push_back({name(), std::move(sub_graph), spec});
  }
  return result;
}

}  // namespace collage
