#include "partition/rules/op_predicate.h"

namespace collage {

std::vector<CandidatePartition> OpPredicatePartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  for (const DataflowGraph::Node& node : graph.nodes()) {
    const auto* call = as<CallNode>(node.expr);
    if (call == nullptr || call->op == nullptr || !predicate_(*call)) continue;
    SubGraph sub_graph =
        SubGraph::of(graph, with_tuple_arguments(graph, IndexSet({node.index})), call->op->name);
    if (sub_graph.is_valid(graph, {})) result.push_back({name(), std::move(sub_graph), spec});
  }
  return result;
}

}  // namespace collage
