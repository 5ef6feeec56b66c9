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

  std::vector<bool> run() {
    kept_.assign(candidates_.size(), false);
    IndexSet everything;
    for (size_t c = 0; c < candidates_.size(); ++c) everything |= inside(c);
    keep_largest_within(everything);
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
        for (const IndexSet& rest : {inside(c) - inside(other), inside(other) - inside(c)})
          if (!rest.empty() && seen_.insert(rest).second) keep_largest_within(rest);
        if (++pairs_ > kMaxPairs) return std::vector<bool>(candidates_.size(), true);
      }
    }
    return kept_;
  }

 private:
  static constexpr size_t kMaxPairs = 2'000'000;  // beyond it everything is kept

  const IndexSet& inside(size_t c) const { return candidates_[c].sub_graph.inside(); }

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
      if (std::any_of(here.begin(), here.end(),
                      [&](size_t other) { return inside(c).is_subset_of(inside(other)); }))
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
  std::vector<bool> kept_;
  std::deque<size_t> work_;
  std::unordered_set<IndexSet, IndexSetHash> seen_;
  size_t pairs_ = 0;
};

}  // namespace

std::vector<CandidatePartition> prune_candidates(const DataflowGraph& graph,
                                                 std::vector<CandidatePartition> candidates) {
  std::vector<bool> kept = Pruner(graph, candidates).run();
  std::vector<CandidatePartition> result;
  for (size_t c = 0; c < candidates.size(); ++c)
    if (kept[c]) result.push_back(std::move(candidates[c]));
  return result;
}

}  // namespace collage
