#include "partition/lightweight.h"

#include <algorithm>
#include <deque>

#include "partition/candidate_order.h"
#include "partition/dependence.h"

namespace collage {

std::vector<CandidatePartition> partition_lightly(
    const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
    const std::function<bool(const CandidatePartition&)>& accept,
    const std::function<int(const PartitionSpec&)>& rank) {
  struct Choice {
    size_t candidate, calls;
    bool anchored;
    int rank;
  };
  std::vector<Choice> order;
  for (size_t c = 0; c < candidates.size(); ++c) {
    size_t calls = 0;
    candidates[c].sub_graph.inside().for_each(
        [&](PostDfsIndex i) { calls += as<CallNode>(graph.node(i).expr) != nullptr; });
    const PartitionSpec& spec = *candidates[c].spec;
    order.push_back({c, calls, candidates[c].sub_graph.kind() >= FusionKind::kAnchor,
                     rank ? rank(spec) : static_cast<int>(spec.is_host)});
  }
  std::stable_sort(order.begin(), order.end(), [&](const Choice& a, const Choice& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.anchored != b.anchored) return a.anchored;
    return a.calls > b.calls;
  });
  std::deque<CandidatePartition> chosen;  // which stay where they are
  std::vector<const SubGraph*> owner(graph.size(), nullptr);
  for (const Choice& choice : order) {
    CandidatePartition& candidate = candidates[choice.candidate];
    const SubGraph& sub_graph = candidate.sub_graph;
    bool free = true;
    sub_graph.inside().for_each([&](PostDfsIndex i) { free = free && owner[i] == nullptr; });
    if (!free || waits_for_itself(graph, sub_graph, owner)) continue;
    if (accept && !accept(candidate)) continue;
    chosen.push_back(std::move(candidate));
    chosen.back().sub_graph.inside().for_each(
        [&](PostDfsIndex i) { owner[i] = &chosen.back().sub_graph; });
  }
  std::vector<CandidatePartition> result(std::make_move_iterator(chosen.begin()),
                                         std::make_move_iterator(chosen.end()));
  sort_by_last_node(result);
  return result;
}

}  // namespace collage
