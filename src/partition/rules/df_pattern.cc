#include "partition/rules/df_pattern.h"

#include <unordered_set>

namespace collage {

std::vector<CandidatePartition> DFPatternPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  UseCount uses = [&](const ExprNode* expr) {
    PostDfsIndex index = graph.index_of(expr);
    return graph.node(index).outputs.size() + (graph.node(index).is_external ? 1 : 0);
  };
  for (const DataflowGraph::Node& node : graph.nodes()) {
    std::unordered_set<IndexSet, IndexSetHash> seen;
    for_each_match(pattern_, node.expr, uses, [&](const Match& match) {
      IndexSet inside;
      for (const Expr& part : match.inside) inside.insert(graph.index_of(part));
      if (inside.empty() || (predicate_ && !predicate_(match))) return true;
      inside = with_tuple_arguments(graph, std::move(inside));
      if (!seen.insert(inside).second) return true;
      IndexSet constants;
      for (const Expr& constant : match.constants())
        if (graph.contains(constant)) constants.insert(graph.index_of(constant));  // in no callee
      SubGraph sub_graph = SubGraph::of(graph, std::move(inside), name()).with_required(constants);
      if (sub_graph.is_valid(graph, config_))
        result.push_back({name(), std::move(sub_graph), spec});
      return true;
    });
  }
  return result;
}

}  // namespace collage
