#include "partition/merge.h"

#include <algorithm>

#include "partition/candidate_order.h"
#include "partition/dependence.h"

namespace collage {

namespace {

class Merger {
 public:
  Merger(const DataflowGraph& graph, std::vector<CandidatePartition> kernels)
      : graph_(graph),
        kernels_(std::move(kernels)),
        alive_(kernels_.size(), true),
        owner_(graph.size(), DataflowGraph::kNone) {
    for (size_t k = 0; k < kernels_.size(); ++k)
      kernels_[k].sub_graph.inside().for_each([&](PostDfsIndex i) { owner_[i] = k; });
  }

  std::vector<CandidatePartition> run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (PostDfsIndex i = 0; i < graph_.size(); ++i) {
        if (owner_[i] == DataflowGraph::kNone) continue;
        for (PostDfsIndex input : graph_.node(i).inputs) changed |= join(input, i);
      }
    }
    std::vector<CandidatePartition> result;
    for (size_t k = 0; k < kernels_.size(); ++k)
      if (alive_[k]) result.push_back(std::move(kernels_[k]));
    sort_by_last_node(result);
    return result;
  }

 private:
  bool is_free(PostDfsIndex i) const {
    NodeRole role = node_role(graph_, i);
    return owner_[i] == DataflowGraph::kNone &&
           (role == NodeRole::kTuple || role == NodeRole::kProjection || role == NodeRole::kView);
  }

  // Joins the kernel of `user` with the one that gives `input`, over wires in between.
  bool join(PostDfsIndex input, PostDfsIndex user) {
    IndexSet wires;
    std::vector<PostDfsIndex> work = {input};
    size_t below = owner_[user];
    bool changed = false;
    while (!work.empty()) {
      PostDfsIndex at = work.back();
      work.pop_back();
      if (is_free(at)) {
        wires.insert(at);
        for (PostDfsIndex next : graph_.node(at).inputs) work.push_back(next);
      } else if (owner_[at] != DataflowGraph::kNone && owner_[at] != below) {
        changed |= merge(owner_[at], below, wires);
        below = owner_[user];
        wires -= kernels_[below].sub_graph.inside();
      }
    }
    return changed;
  }

  bool merge(size_t a, size_t b, const IndexSet& wires) {
    const CandidatePartition &x = kernels_[a], &y = kernels_[b];
    if (x.spec != y.spec || !x.spec->merges) return false;
    IndexSet inside = x.sub_graph.inside() | y.sub_graph.inside();
    // Of the wires those that lead from one to the other; a tuple takes its fields from anywhere.
    for (bool grown = true; grown;) {
      grown = false;
      wires.for_each([&](PostDfsIndex i) {
        auto holds = [&](PostDfsIndex j) { return inside.contains(j); };
        const DataflowGraph::Node& node = graph_.node(i);
        if (inside.contains(i) || std::none_of(node.inputs.begin(), node.inputs.end(), holds) ||
            std::none_of(node.outputs.begin(), node.outputs.end(),
                         [&](PostDfsIndex j) { return inside.contains(j) || wires.contains(j); }))
          return;
        inside.insert(i);
        grown = true;
      });
    }
    std::vector<SubGraph::Nested> nested = x.sub_graph.nested();
    nested.insert(nested.end(), y.sub_graph.nested().begin(), y.sub_graph.nested().end());
    SubGraph merged(graph_, std::move(inside), std::max(x.sub_graph.kind(), y.sub_graph.kind()),
                    x.sub_graph.label(), std::move(nested),
                    x.sub_graph.required() | y.sub_graph.required());
    if (!merged.is_valid(graph_, {0, 0, true}) || waits(merged, a, b)) return false;
    merged.inside().for_each([&](PostDfsIndex i) { owner_[i] = b; });
    kernels_[b].sub_graph = std::move(merged);
    alive_[a] = false;
    return true;
  }

  bool waits(const SubGraph& merged, size_t a, size_t b) const {
    std::vector<const SubGraph*> owners(graph_.size(), nullptr);
    for (PostDfsIndex i = 0; i < graph_.size(); ++i)
      if (owner_[i] != DataflowGraph::kNone && owner_[i] != a && owner_[i] != b)
        owners[i] = &kernels_[owner_[i]].sub_graph;
    return waits_for_itself(graph_, merged, owners);
  }

  const DataflowGraph& graph_;
  std::vector<CandidatePartition> kernels_;
  std::vector<bool> alive_;
  std::vector<size_t> owner_;
};

}  // namespace

std::vector<CandidatePartition> merge_touching(const DataflowGraph& graph,
                                               std::vector<CandidatePartition> kernels) {
  return Merger(graph, std::move(kernels)).run();
}

}  // namespace collage
