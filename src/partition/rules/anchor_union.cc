#include "partition/rules/anchor_union.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_set>

#include "partition/candidate_order.h"

namespace collage {

namespace {

// The one anchor inside, or kNone: a candidate with several is a union already.
PostDfsIndex anchor_of(const DataflowGraph& graph, const SubGraph& sub_graph) {
  PostDfsIndex anchor = DataflowGraph::kNone;
  bool one = true;
  sub_graph.inside().for_each([&](PostDfsIndex i) {
    const auto* call = as<CallNode>(graph.node(i).expr);
    if (call == nullptr || call->op == nullptr || call->op->kind != FusionKind::kAnchor) return;
    one = one && anchor == DataflowGraph::kNone;
    anchor = i;
  });
  return one ? anchor : DataflowGraph::kNone;
}

// The smallest and the largest candidate of every anchor, in that order; one where they are equal.
std::map<PostDfsIndex, std::vector<const CandidatePartition*>> by_anchor(
    const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates) {
  std::map<PostDfsIndex, std::vector<const CandidatePartition*>> result;
  for (const CandidatePartition& candidate : candidates) {
    PostDfsIndex anchor = anchor_of(graph, candidate.sub_graph);
    if (anchor != DataflowGraph::kNone) result[anchor].push_back(&candidate);
  }
  for (auto& [anchor, list] : result) {
    std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) {
      return a->sub_graph.inside().size() < b->sub_graph.inside().size();
    });
    if (list.size() > 2) list = {list.front(), list.back()};
  }
  return result;
}

class Joiner {
 public:
  Joiner(const DataflowGraph& graph, std::string name, std::shared_ptr<const PartitionSpec> spec)
      : graph_(graph), name_(std::move(name)), spec_(std::move(spec)) {}

  void add(const std::vector<const CandidatePartition*>& parts, size_t max_exits,
           bool truncated = false) {
    SubGraph joined = parts[0]->sub_graph;
    for (size_t p = 1; p < parts.size(); ++p) {
      if (joined.inside().intersects(parts[p]->sub_graph.inside())) return;
      joined = joined.disjoint_union(graph_, parts[p]->sub_graph);
    }
    if (!joined.is_valid(graph_, {0, max_exits, false})) return;
    if (seen_.insert(joined.inside()).second)
      found_.push_back({name_, std::move(joined), spec_, truncated});
  }

  std::vector<CandidatePartition> finish() && {
    sort_by_last_node(found_);
    return std::move(found_);
  }

 private:
  const DataflowGraph& graph_;
  const std::string name_;
  const std::shared_ptr<const PartitionSpec> spec_;
  std::unordered_set<IndexSet, IndexSetHash> seen_;
  std::vector<CandidatePartition> found_;
};

}  // namespace

std::vector<HorizontalPartitionRule::Siblings> HorizontalPartitionRule::siblings_among(
    const DataflowGraph& graph, const std::vector<PostDfsIndex>& anchors) const {
  const auto call = [&](PostDfsIndex anchor) -> const CallNode& {
    return *as<CallNode>(graph.node(anchor).expr);
  };
  std::map<std::pair<PostDfsIndex, std::string>, std::vector<Siblings>> groups;
  for (PostDfsIndex anchor : anchors) {
    if (options_.argument >= call(anchor).args.size()) continue;
    auto& alike =
        groups[{graph.index_of(call(anchor).args[options_.argument]), call(anchor).op->name}];
    auto group = std::find_if(alike.begin(), alike.end(), [&](const Siblings& siblings) {
      return !options_.accepts || options_.accepts(call(siblings.anchors[0]), call(anchor));
    });
    if (group == alike.end()) group = alike.insert(alike.end(), Siblings());
    if (group->anchors.size() < options_.max_siblings)
      group->anchors.push_back(anchor);
    else
      group->truncated = true;
  }
  std::vector<Siblings> result;
  for (auto& [read, alike] : groups)
    for (Siblings& group : alike)
      if (group.anchors.size() > 1) result.push_back(std::move(group));
  return result;
}

std::vector<CandidatePartition> HorizontalPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> inner = rule_->all_candidates(graph, spec);
  // A candidate reads its anchor's first argument, or computes it.
  if (options_.all_or_none)
    std::erase_if(inner, [](const auto& c) { return c.sub_graph.input().size() != 1; });
  auto anchors = by_anchor(graph, inner);
  std::vector<PostDfsIndex> indices;
  for (const auto& [anchor, list] : anchors) indices.push_back(anchor);
  Joiner joiner(graph, name(), spec);
  const auto add = [&](std::span<const PostDfsIndex> siblings, bool largest, bool truncated) {
    std::vector<const CandidatePartition*> parts;
    for (PostDfsIndex anchor : siblings)
      parts.push_back(largest ? anchors.at(anchor).back() : anchors.at(anchor).front());
    joiner.add(parts, parts.size(), truncated);
  };
  for (const Siblings& group : siblings_among(graph, indices)) {
    const std::span siblings(group.anchors);
    add(siblings, true, group.truncated);
    if (options_.all_or_none) continue;
    add(siblings, false, group.truncated);
    for (size_t s = 0; s + 1 < siblings.size(); ++s)
      for (bool largest : {false, true}) add(siblings.subspan(s, 2), largest, false);
  }
  return std::move(joiner).finish();
}

bool is_stacked_pair(const CallNode& up, const CallNode& down) {
  auto is_conv = [](const CallNode& call) {
    return call.op->name.starts_with("nn.conv") && call.attrs.has("groups");
  };
  auto is_product = [](const CallNode& call) {
    return call.op->name == "nn.dense" || call.op->name == "nn.matmul" ||
           call.op->name == "nn.batch_matmul";
  };
  if (is_conv(up) && is_conv(down))
    return up.attrs.integer("groups") == 1 && down.attrs.integer("groups") > 1;
  return is_product(up) && is_product(down);
}

std::vector<CandidatePartition> VerticalPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> inner = rule_->all_candidates(graph, spec);
  std::map<PostDfsIndex, std::vector<std::pair<PostDfsIndex, const CandidatePartition*>>> by_exit;
  for (const CandidatePartition& candidate : inner) {
    PostDfsIndex anchor = anchor_of(graph, candidate.sub_graph);
    if (anchor != DataflowGraph::kNone && candidate.sub_graph.exit().size() == 1)
      by_exit[candidate.sub_graph.exit().first()].emplace_back(anchor, &candidate);
  }
  Joiner joiner(graph, name(), spec);
  for (const auto& [anchor, list] : by_anchor(graph, inner)) {
    auto above = by_exit.find(graph.node(anchor).inputs[0]);
    if (above == by_exit.end()) continue;
    for (const auto& [up, candidate] : above->second) {
      if (!accepts_(*as<CallNode>(graph.node(up).expr), *as<CallNode>(graph.node(anchor).expr)))
        continue;
      for (const CandidatePartition* below : list)
        joiner.add({candidate, below}, below->sub_graph.exit().size());
    }
  }
  return std::move(joiner).finish();
}

}  // namespace collage
