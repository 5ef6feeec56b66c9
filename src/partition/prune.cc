#include "partition/prune.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_set>

namespace collage {

namespace {

class Pruner {
 public:
  Pruner(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates)
      : candidates_(candidates), starting_(graph.size()), holding_(graph.size()) {
    for (size_t c = 0; c < candidates.size(); ++c) starting_[inside(c).first()].push_back(c);
    for (std::vector<size_t>& list : starting_)
      std::stable_sort(list.begin(), list.end(),
                       [&](size_t a, size_t b) { return inside(a).size() > inside(b).size(); });
  }

  // Of all candidates.
  std::vector<bool> run() {
    kept_.assign(candidates_.size(), false);
    IndexSet everything;
    for (size_t c = 0; c < candidates_.size(); ++c) everything |= inside(c);
    keep_largest_within(everything);
    return finish();
  }

  // Of those that may go; the others are all kept. Only `dominators` stand for what lies in them.
  std::vector<bool> run(const std::vector<bool>& may_go, std::vector<bool> dominators) {
    dominators_ = std::move(dominators);
    IndexSet touched;  // by those that may go
    kept_ = may_go;
    kept_.flip();
    for (size_t c = 0; c < candidates_.size(); ++c)
      if (may_go[c]) touched |= inside(c);
    for (size_t c = 0; c < candidates_.size(); ++c)
      if (kept_[c] && inside(c).intersects(touched)) work_.push_back(c);
    return finish();
  }

 private:
  // Looks at what those kept leave to one another.
  std::vector<bool> finish() {
    while (!work_.empty()) {
      size_t c = work_.front();
      work_.pop_front();
      // Those kept before it; later ones will look at it in their turn.
      std::vector<size_t> others;
      inside(c).for_each([&](size_t i) {
        for (size_t other : holding_[i]) others.push_back(other);
      });
      std::sort(others.begin(), others.end());
      others.erase(std::unique(others.begin(), others.end()), others.end());
      inside(c).for_each([&](size_t i) { holding_[i].push_back(c); });
      for (size_t other : others) {
        keep_rest(c, other);
        keep_rest(other, c);
        if (++pairs_ > kMaxPairs) return std::vector<bool>(candidates_.size(), true);
      }
    }
    return kept_;
  }

  static constexpr size_t kMaxPairs = 2'000'000;  // beyond it everything is kept

  const IndexSet& inside(size_t c) const { return candidates_[c].sub_graph.inside(); }
  bool stands_for_its_parts(size_t c) const { return dominators_.empty() || dominators_[c]; }

  // What `cut` leaves of `whole`. One that stands for its parts need not be cut from within: where
  // all that covers it lies in it, it is the better choice.
  void keep_rest(size_t whole, size_t cut) {
    if (!dominators_.empty() && (!dominators_[whole] || inside(cut).is_subset_of(inside(whole))))
      return;
    const IndexSet rest = inside(whole) - inside(cut);
    if (!rest.empty() && seen_.insert(rest).second) keep_largest_within(rest);
  }

  // Of each target, the candidates within the region that lie in no other one within it.
  void keep_largest_within(const IndexSet& region) {
    std::vector<size_t> within;
    region.for_each([&](size_t i) {
      for (size_t c : starting_[i])
        if (inside(c).is_subset_of(region)) within.push_back(c);
    });
    std::stable_sort(within.begin(), within.end(),
                     [&](size_t a, size_t b) { return inside(a).size() > inside(b).size(); });
    std::map<const PartitionSpec*, std::map<size_t, std::vector<size_t>>> by_node;
    for (size_t c : within) {
      auto& larger = by_node[candidates_[c].spec.get()];
      auto& here = larger[inside(c).first()];
      if (std::any_of(here.begin(), here.end(), [&](size_t other) {
            return stands_for_its_parts(other) && inside(c).is_subset_of(inside(other));
          }))
        continue;
      inside(c).for_each([&](size_t i) { larger[i].push_back(c); });
      if (kept_[c]) continue;
      kept_[c] = true;
      work_.push_back(c);
    }
  }

  const std::vector<CandidatePartition>& candidates_;
  std::vector<std::vector<size_t>> starting_;  // by lowest node, larger ones first
  std::vector<std::vector<size_t>> holding_;   // by node: those kept and looked at
  std::vector<bool> dominators_;               // empty: all
  std::vector<bool> kept_;
  std::deque<size_t> work_;
  std::unordered_set<IndexSet, IndexSetHash> seen_;
  size_t pairs_ = 0;
};

// Those that never lose against their parts and that no other target but the host touches.
std::vector<bool> find_dominators(const DataflowGraph& graph,
                                  const std::vector<CandidatePartition>& candidates) {
  // By node: the one target, beside the host, that has candidates with it.
  std::vector<const PartitionSpec*> only(graph.size(), nullptr);
  IndexSet contested;
  for (const CandidatePartition& candidate : candidates)
    if (!candidate.spec->is_host)
      candidate.sub_graph.inside().for_each([&](PostDfsIndex i) {
        if (only[i] != nullptr && only[i] != candidate.spec.get()) contested.insert(i);
        only[i] = candidate.spec.get();
      });
  std::vector<bool> dominators;
  for (const CandidatePartition& candidate : candidates)
    dominators.push_back(fusion_never_loses(candidate) &&
                         !candidate.sub_graph.inside().intersects(contested));
  return dominators;
}

// Which candidates lie in a larger dominator of their target.
std::vector<bool> find_dominated(const DataflowGraph& graph,
                                 const std::vector<CandidatePartition>& candidates,
                                 const std::vector<bool>& dominators) {
  std::vector<std::vector<size_t>> holding(graph.size());  // by node: dominators
  for (size_t c = 0; c < candidates.size(); ++c)
    if (dominators[c])
      candidates[c].sub_graph.inside().for_each([&](PostDfsIndex i) { holding[i].push_back(c); });
  std::vector<bool> dominated(candidates.size(), false);
  for (size_t c = 0; c < candidates.size(); ++c) {
    const IndexSet& nodes = candidates[c].sub_graph.inside();
    for (size_t larger : holding[nodes.first()])
      dominated[c] = dominated[c] || (candidates[larger].spec == candidates[c].spec &&
                                      candidates[larger].sub_graph.inside().size() > nodes.size() &&
                                      nodes.is_subset_of(candidates[larger].sub_graph.inside()));
  }
  return dominated;
}

}  // namespace

bool fusion_never_loses(const CandidatePartition& candidate) {
  return candidate.spec->compiler.empty() && !candidate.spec->is_host &&
         candidate.sub_graph.kind() == FusionKind::kElementwise &&
         candidate.sub_graph.exit().size() == 1;
}

std::vector<CandidatePartition> prune_candidates(const DataflowGraph& graph,
                                                 std::vector<CandidatePartition> candidates) {
  std::vector<bool> kept = Pruner(graph, candidates).run();
  std::vector<CandidatePartition> result;
  for (size_t c = 0; c < candidates.size(); ++c)
    if (kept[c]) result.push_back(std::move(candidates[c]));
  return result;
}

std::vector<CandidatePartition> prune_dominated(const DataflowGraph& graph,
                                                std::vector<CandidatePartition> candidates,
                                                std::vector<CandidatePartition>& pruned) {
  std::vector<bool> dominators = find_dominators(graph, candidates);
  std::vector<bool> dominated = find_dominated(graph, candidates, dominators);
  std::vector<bool> kept = Pruner(graph, candidates).run(dominated, std::move(dominators));
  std::vector<CandidatePartition> result;
  for (size_t c = 0; c < candidates.size(); ++c)
    (kept[c] ? result : pruned).push_back(std::move(candidates[c]));
  return result;
}

}  // namespace collage
