#include "partition/rules/max_coalesce.h"

#include <algorithm>

#include "partition/candidate_order.h"

namespace collage {

namespace {

struct Region {
  SubGraph whole;         // without nested ones
  IndexSet below, above;  // downstream of something inside; upstream
  std::vector<SubGraph::Nested> nested;
  std::vector<size_t> parts;  // candidates; empty for wires and views alone
  bool alive = true;
  bool truncated = false;
};

class Coalescer {
 public:
  Coalescer(const DataflowGraph& graph, const SubGraphConfig& config,
            std::vector<CandidatePartition> candidates)
      : graph_(graph),
        config_(config),
        candidates_(std::move(candidates)),
        region_of_(graph.size(), DataflowGraph::kNone) {}

  std::vector<CandidatePartition> run(const std::string& name) {
    start();
    bool changed = true;
    while (changed) {
      changed = false;
      for (PostDfsIndex i = 0; i < graph_.size(); ++i)
        for (PostDfsIndex input : graph_.node(i).inputs)
          changed |= join(region_of_[input], region_of_[i]);
    }
    std::vector<CandidatePartition> result;
    for (Region& region : regions_) {
      if (!region.alive || region.parts.empty()) continue;
      IndexSet inside = region.whole.inside();
      trim(inside);
      SubGraph sub_graph(graph_, std::move(inside), region.whole.kind(), name, region.nested);
      if (sub_graph.is_valid(graph_, config_)) {
        result.push_back(
            {name, std::move(sub_graph), candidates_[region.parts[0]].spec, region.truncated});
      } else {
        for (size_t part : region.parts) result.push_back(candidates_[part]);
      }
    }
    sort_by_last_node(result);
    return result;
  }

 private:
  // One region for each candidate of a disjoint selection (larger first), and for each wire or view
  // in none.
  void start() {
    std::vector<size_t> order(candidates_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return candidates_[a].sub_graph.inside().size() > candidates_[b].sub_graph.inside().size();
    });
    IndexSet taken;
    for (size_t i : order) {
      const SubGraph& sub_graph = candidates_[i].sub_graph;
      if (sub_graph.inside().intersects(taken)) continue;
      taken |= sub_graph.inside();
      add({SubGraph(graph_, sub_graph.inside(), sub_graph.kind()),
           {},
           {},
           sub_graph.nested(),
           {i}});
    }
    for (PostDfsIndex i = 0; i < graph_.size(); ++i) {
      NodeRole role = node_role(graph_, i);
      if (!taken.contains(i) &&
          (role == NodeRole::kTuple || role == NodeRole::kProjection || role == NodeRole::kView))
        add({SubGraph(graph_, {i}, FusionKind::kElementwise), {}, {}, {}, {}});
    }
  }

  void add(Region region) {
    region.whole.inside().for_each([&](PostDfsIndex i) {
      region_of_[i] = regions_.size();
      region.below |= graph_.downstream(i);
      region.above |= graph_.upstream(i);
    });
    regions_.push_back(std::move(region));
  }

  bool join(size_t a, size_t b) {
    if (a == b || a == DataflowGraph::kNone || b == DataflowGraph::kNone) return false;
    Region& x = regions_[a];
    Region& y = regions_[b];
    // A path that leaves and comes back, if any, starts in one of the two and ends in the other.
    SubGraph joined = x.whole.disjoint_union(graph_, y.whole);
    IndexSet between = (x.below | y.below) & (x.above | y.above);
    if (!between.is_subset_of(joined.inside())) return false;
    if (!joined.is_valid(graph_, config_)) {
      x.truncated = y.truncated = x.truncated || joined.is_valid(graph_, {0, 0, true});
      return false;
    }
    x.truncated = false;
    y.whole.inside().for_each([&](PostDfsIndex i) { region_of_[i] = a; });
    x.whole = std::move(joined);
    x.below |= y.below;
    x.above |= y.above;
    x.nested.insert(x.nested.end(), y.nested.begin(), y.nested.end());
    x.parts.insert(x.parts.end(), y.parts.begin(), y.parts.end());
    y.alive = false;
    return true;
  }

  void trim(IndexSet& inside) const {
    IndexSet original = inside;
    for (size_t i : original.elements())
      if (node_role(graph_, i) == NodeRole::kView && !inside.contains(graph_.node(i).inputs[0]))
        inside.erase(i);
    std::vector<size_t> descending = inside.elements();
    std::reverse(descending.begin(), descending.end());
    for (size_t i : descending) {
      const std::vector<PostDfsIndex>& outputs = graph_.node(i).outputs;
      if (node_role(graph_, i) == NodeRole::kView &&
          std::none_of(outputs.begin(), outputs.end(),
                       [&](PostDfsIndex output) { return inside.contains(output); }))
        inside.erase(i);
    }
    if (inside.empty()) inside = std::move(original);
  }

  const DataflowGraph& graph_;
  const SubGraphConfig& config_;
  std::vector<CandidatePartition> candidates_;
  std::vector<size_t> region_of_;
  std::vector<Region> regions_;
};

}  // namespace

std::vector<CandidatePartition> MaxCoalescePartitionRule::all_candidates(
    const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const {
  return Coalescer(graph, config_, rule_->all_candidates(graph, spec)).run(name());
}

}  // namespace collage
