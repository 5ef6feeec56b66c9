#include "partition/rules/combine_by_primitives.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "partition/candidate_order.h"

namespace collage {

namespace {

bool passes(NodeRole role) {
  return role == NodeRole::kView || role == NodeRole::kTuple || role == NodeRole::kProjection;
}

size_t count_kernels(const DataflowGraph& graph, const IndexSet& inside) {
  size_t count = 0;
  inside.for_each([&](PostDfsIndex i) { count += node_role(graph, i) == NodeRole::kKernel; });
  return count;
}

// Of the nodes, sets that no edge connects.
size_t count_pieces(const DataflowGraph& graph, IndexSet nodes) {
  size_t count = 0;
  for (; !nodes.empty(); ++count) {
    std::vector<PostDfsIndex> piece = {nodes.first()};
    nodes.erase(piece[0]);
    for (size_t next = 0; next < piece.size(); ++next)
      for (const auto* neighbours :
           {&graph.node(piece[next]).inputs, &graph.node(piece[next]).outputs})
        for (PostDfsIndex i : *neighbours)
          if (nodes.contains(i)) {
            nodes.erase(i);
            piece.push_back(i);
          }
  }
  return count;
}

class Combiner {
 public:
  Combiner(const DataflowGraph& graph, const CombineConfig& config,
           const std::vector<CandidatePartition>& base)
      : graph_(graph), config_(config), containing_(graph.size()), alone_(graph.size()) {
    for (const CandidatePartition& candidate : base) {
      const SubGraph& sub_graph = candidate.sub_graph;
      sub_graph.inside().for_each([&](PostDfsIndex i) { containing_[i].push_back(&sub_graph); });
      if (sub_graph.exit().size() == 1 && count_kernels(graph, sub_graph.inside()) == 1 &&
          sub_graph.depth(graph).calls == 1)
        alone_[sub_graph.exit().first()] = &sub_graph;
    }
  }

  // Every valid sub-graph that `from` grows into in one step. `truncated` becomes true where there
  // would be more but for the limits.
  std::vector<SubGraph> grown(const SubGraph& from, const SubGraphConfig& limits, size_t max_ops,
                              bool& truncated) const {
    std::vector<SubGraph> result;
    auto take = [&](const IndexSet& added, const SubGraph* base) {
      IndexSet inside = from.inside() | added;
      std::vector<SubGraph::Nested> nested = from.nested();
      IndexSet required = from.required();
      FusionKind kind = from.kind();
      added.for_each([&](PostDfsIndex i) {
        if (alone_[i] == nullptr || (base != nullptr && base->inside().contains(i))) return;
        kind = std::max(kind, alone_[i]->kind());
        required |= alone_[i]->required();
        nested.insert(nested.end(), alone_[i]->nested().begin(), alone_[i]->nested().end());
      });
      if (base != nullptr) {
        inside |= base->inside();
        nested.insert(nested.end(), base->nested().begin(), base->nested().end());
        kind = std::max(kind, base->kind());
        required |= base->required();
      }
      const bool too_many = count_kernels(graph_, inside) > max_ops;
      SubGraph sub_graph(graph_, std::move(inside), kind, "", std::move(nested),
                         std::move(required));
      const size_t exits = std::max(from.exit().size(), base != nullptr ? base->exit().size() : 1);
      const SubGraphConfig within{limits.max_depth, exits, exits > 1, limits.max_kernel_depth};
      if (!too_many && sub_graph.is_valid(graph_, within))
        result.push_back(std::move(sub_graph));
      else
        truncated = truncated || sub_graph.is_valid(graph_, {0, exits, exits > 1});
    };
    grow_down(from, take);
    grow_up(from, take);
    return result;
  }

 private:
  bool may_join(FusionKind up, FusionKind down) const {
    return std::any_of(config_.joins.begin(), config_.joins.end(), [&](const KindJoin& join) {
      return join.up_min <= up && up <= join.up_max && join.down_min <= down &&
             down <= join.down_max;
    });
  }

  template <typename Take>
  void grow_down(const SubGraph& from, Take&& take) const {
    from.exit().for_each([&](PostDfsIndex exit) { grow_down(from, exit, take); });
  }

  template <typename Take>
  void grow_down(const SubGraph& from, PostDfsIndex exit, Take&& take) const {
    IndexSet added;
    while (true) {
      PostDfsIndex target = graph_.post_dominator(exit);
      if (target == DataflowGraph::kNone || from.inside().contains(target)) return;
      // Of the whole sets, only what lies between the two is of interest.
      const IndexSet &below = graph_.downstream(exit), &above = graph_.upstream(target);
      IndexSet between;
      for (PostDfsIndex i = below.next(exit); i < target; i = below.next(i + 1))
        if (above.contains(i) && !from.inside().contains(i)) between.insert(i);
      bool allowed = true;
      between.for_each([&](PostDfsIndex i) {
        allowed = allowed && (passes(node_role(graph_, i)) ||
                              (alone_[i] != nullptr && may_join(from.kind(), alone_[i]->kind())));
      });
      if (!allowed) return;
      added |= between;
      if (!passes(node_role(graph_, target))) {
        for (const SubGraph* base : containing_[target])
          if (may_join(from.kind(), base->kind()) && !base->inside().intersects(from.inside()))
            take(with_tuple_arguments(graph_, added), base);
        return;
      }
      added.insert(target);
      exit = target;
    }
  }

  template <typename Take>
  void grow_up(const SubGraph& from, Take&& take) const {
    from.input().for_each([&](PostDfsIndex input) {
      IndexSet added;
      PostDfsIndex producer = input;
      while (node_role(graph_, producer) == NodeRole::kView ||
             node_role(graph_, producer) == NodeRole::kProjection) {
        added.insert(producer);
        producer = graph_.node(producer).inputs[0];
      }
      for (const SubGraph* base : containing_[producer])
        if (base->exit().contains(producer) && may_join(base->kind(), from.kind()) &&
            !base->inside().intersects(from.inside()))
          take(added, base);
    });
  }

  const DataflowGraph& graph_;
  const CombineConfig& config_;
  std::vector<std::vector<const SubGraph*>> containing_;  // base candidates by node
  std::vector<const SubGraph*> alone_;                    // the one-kernel base candidate of a node
};

}  // namespace

std::vector<KindJoin> fuse_ops_joins() {
  using enum FusionKind;
  return {
      {"injective, then injective", kElementwise, kInjective, kElementwise, kInjective},
      {"injective, then reduction", kElementwise, kInjective, kReduction, kReduction},
      {"reduction, then broadcast", kReduction, kReduction, kElementwise, kBroadcast},
      {"anchor, then broadcast", kAnchor, kAnchor, kElementwise, kBroadcast},
  };
}

std::vector<KindJoin> any_joins() {
  using enum FusionKind;
  return {{"any, then any", kElementwise, kOpaque, kElementwise, kOpaque}};
}

std::vector<CandidatePartition> CombineByPrimitivesPartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  std::vector<CandidatePartition> result = rule_->all_candidates(graph, spec);
  const std::vector<CandidatePartition> base = result;
  Combiner combiner(graph, config_, base);
  std::unordered_set<IndexSet, IndexSetHash> seen;
  std::unordered_map<PostDfsIndex, size_t> per_exit;
  std::deque<size_t> work;  // of the result, what was not grown yet
  for (size_t c = 0; c < base.size(); ++c) {
    seen.insert(base[c].sub_graph.inside());
    ++per_exit[base[c].sub_graph.exit().first()];
    work.push_back(c);
  }

  // Breadth first: all candidates of k joins before those of k + 1.
  const SubGraphConfig limits{config_.max_call_depth, 0, true, config_.max_depth};
  while (!work.empty()) {
    const size_t from = work.front();
    work.pop_front();
    bool truncated = false;
    for (SubGraph& sub_graph :
         combiner.grown(result[from].sub_graph, limits, config_.max_ops, truncated)) {
      if (seen.contains(sub_graph.inside())) continue;
      size_t& count = per_exit[sub_graph.exit().first()];
      if (count >= config_.max_per_exit) {
        truncated = true;
        continue;
      }
      ++count;
      seen.insert(sub_graph.inside());
      work.push_back(result.size());
      result.push_back({name(), std::move(sub_graph), spec});
    }
    result[from].truncated |= truncated;
  }

  // Maximal ones: from the base candidates in order, those inside an earlier region left out.
  std::vector<IndexSet> regions;
  if (config_.maximal) {
    const SubGraphConfig no_limits = config_.strict ? limits : SubGraphConfig{0, 0, true};
    const size_t most = config_.strict ? config_.max_ops : CombineConfig::kMaxRegion;
    for (const CandidatePartition& candidate : base) {
      const IndexSet& seed = candidate.sub_graph.inside();
      if (std::any_of(regions.begin(), regions.end(),
                      [&](const IndexSet& region) { return seed.is_subset_of(region); }))
        continue;
      SubGraph region = candidate.sub_graph;
      bool truncated = false;
      for (std::vector<SubGraph> next;
           !(next = combiner.grown(region, no_limits, most, truncated)).empty(); truncated = false)
        region =
            *std::max_element(next.begin(), next.end(), [](const SubGraph& a, const SubGraph& b) {
              return a.inside().size() < b.inside().size();
            });
      regions.push_back(region.inside());
      if (seen.insert(region.inside()).second)
        result.push_back({name(), std::move(region), spec, truncated});
    }
  }
  if (config_.max_splits) {
    std::unordered_set<IndexSet, IndexSetHash> kept(regions.begin(), regions.end());
    for (const CandidatePartition& candidate : base) kept.insert(candidate.sub_graph.inside());
    IndexSet lost;
    std::erase_if(result, [&](const CandidatePartition& candidate) {
      const IndexSet& inside = candidate.sub_graph.inside();
      const auto leaves_few = [&](const IndexSet& region) {
        return inside.is_subset_of(region) &&
               count_pieces(graph, region - inside) <= *config_.max_splits;
      };
      if (kept.contains(inside) || std::any_of(regions.begin(), regions.end(), leaves_few))
        return false;
      lost |= inside;
      return true;
    });
    for (CandidatePartition& candidate : result)
      candidate.truncated |= candidate.sub_graph.inside().intersects(lost);
  }
  sort_by_last_node(result);
  return result;
}

}  // namespace collage
