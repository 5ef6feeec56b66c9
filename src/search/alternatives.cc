#include "search/alternatives.h"

#include <algorithm>
#include <limits>
#include <set>

#include "search/scan.h"

namespace collage::search {

namespace {

constexpr size_t kWidth = 8;
constexpr double kSlack = 0.02;  // columns within this fraction of the bound are considered

const Target& target_of(const CompactProblem& compact, const ChosenKernel& kernel) {
  return compact.problem->candidates[kernel.candidate].candidate->spec->target;
}

}  // namespace

Signature signature(const CompactProblem& compact, const Cover& cover) {
  Signature result;
  for (const ChosenKernel& kernel : cover.kernels) {
    const IndexSet& inside =
        compact.problem->candidates[kernel.candidate].candidate->sub_graph.inside();
    std::vector<uint32_t> nodes;
    inside.for_each([&](PostDfsIndex i) {
      const auto at = std::lower_bound(compact.nodes.begin(), compact.nodes.end(), i);
      if (at != compact.nodes.end() && *at == i)
        nodes.push_back(static_cast<uint32_t>(at - compact.nodes.begin()));
    });
    result.emplace_back(std::move(nodes), target_of(compact, kernel));
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<Cover> near_best(const CompactProblem& compact, const Potentials& potentials,
                             const std::vector<uint32_t>& order, const Cover& best, size_t count,
                             size_t& states) {
  Signature first = signature(compact, best);
  // What forbidding each kernel costs at least: the next choice of a column with its nodes, or the
  // least reduced cost of a column that overlaps it otherwise.
  std::vector<std::vector<uint32_t>> holding(compact.nodes.size());
  for (uint32_t c = 0; c < compact.columns.size(); ++c)
    for (uint32_t node : compact.columns[c].nodes) holding[node].push_back(c);
  std::vector<std::pair<double, size_t>> regret;
  for (size_t k = 0; k < first.size(); ++k) {
    double least = kInfinity;
    for (uint32_t c : holding[first[k].first[0]]) {
      const Column& column = compact.columns[c];
      bool same = column.nodes == first[k].first;
      for (size_t choice = 0; choice < column.choices.size(); ++choice)
        if (!same || target_of(compact, column.choices[choice]) != first[k].second) {
          least = std::min(
              least, potentials.reduced[c] + column.choice_costs[choice] - column.choice_costs[0]);
          break;
        }
    }
    regret.emplace_back(least, k);
  }
  std::sort(regret.begin(), regret.end());

  std::vector<Cover> result;
  std::set<Signature> seen = {first};
  std::vector<bool> close(compact.columns.size());
  for (uint32_t c = 0; c < close.size(); ++c)
    close[c] = potentials.reduced[c] < kSlack * potentials.bound;
  CompactProblem without = compact;
  for (size_t tried = 0; tried < std::min(regret.size(), 2 * count); ++tried) {
    if (regret[tried].first == kInfinity || result.size() >= count) break;
    const auto& [nodes, target] = first[regret[tried].second];
    std::vector<bool> usable = close;
    std::vector<uint32_t> changed;
    for (uint32_t c : holding[nodes[0]]) {
      Column& column = without.columns[c];
      if (!usable[c] || column.nodes != nodes) continue;
      changed.push_back(c);
      const Column& all = compact.columns[c];
      column.choices.clear();
      column.choice_costs.clear();
      for (size_t choice = 0; choice < all.choices.size(); ++choice)
        if (target_of(compact, all.choices[choice]) != target) {
          column.choices.push_back(all.choices[choice]);
          column.choice_costs.push_back(all.choice_costs[choice]);
        }
      usable[c] = !column.choices.empty();
      if (usable[c]) column.cost = column.choice_costs[0];
    }
    ScanResult found = Scan(without, potentials, order, usable).run(kWidth, kInfinity, 0);
    states += found.states;
    for (uint32_t c : changed) without.columns[c] = compact.columns[c];
    if (found.cover && seen.insert(signature(compact, *found.cover)).second)
      result.push_back(std::move(*found.cover));
  }
  std::sort(result.begin(), result.end(),
            [](const Cover& a, const Cover& b) { return a.seconds < b.seconds; });
  return result;
}

}  // namespace collage::search
