#include "partition/rules/anchor_epilogue.h"

#include <algorithm>
#include <unordered_set>

#include "partition/candidate_order.h"

namespace collage {

std::vector<CandidatePartition> AnchorEpiloguePartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result;
  std::unordered_set<IndexSet, IndexSetHash> seen;
  auto add = [&](const IndexSet& inside, bool truncated) {
    SubGraph sub_graph = SubGraph::of(graph, with_tuple_arguments(graph, inside), name());
    if (!sub_graph.is_valid(graph, {})) return;
    if (!seen.insert(sub_graph.inside()).second) return;
    result.push_back({name(), std::move(sub_graph), spec, truncated});
  };
  // What follows the chain that ends at the node; null where nothing that is accepted does.
  auto next = [&](const Match& anchor, const std::vector<const CallNode*>& chain,
                  const DataflowGraph::Node& node) -> const CallNode* {
    if (node.is_external || node.outputs.size() != 1) return nullptr;
    const auto* call = as<CallNode>(graph.node(node.outputs[0]).expr);
    if (call == nullptr || call->op == nullptr) return nullptr;
    const auto arg = std::find(call->args.begin(), call->args.end(), node.expr);
    if (std::count(call->args.begin(), call->args.end(), node.expr) != 1) return nullptr;
    const auto position = static_cast<size_t>(arg - call->args.begin());
    return accepts_({anchor, chain, *call, position}) ? call : nullptr;
  };
  auto extend = [&](const Match& anchor) {
    if (anchor.inside.empty() || (anchor_predicate_ && !anchor_predicate_(anchor))) return true;
    IndexSet inside;
    for (const Expr& part : anchor.inside) inside.insert(graph.index_of(part));
    PostDfsIndex at = graph.index_of(anchor.root);
    std::vector<const CallNode*> chain;
    while (true) {
      const DataflowGraph::Node& node = graph.node(at);
      const CallNode* call = next(anchor, chain, node);
      const bool more = call != nullptr && max_steps_ > 0;
      add(inside, more && chain.size() == max_steps_);
      if (!more || chain.size() == max_steps_) return true;
      at = node.outputs[0];
      inside.insert(at);
      chain.push_back(call);
    }
  };
  for (const DataflowGraph::Node& node : graph.nodes())
    for_each_match(anchor_, node.expr, {}, extend);
  sort_by_last_node(result);
  return result;
}

}  // namespace collage
