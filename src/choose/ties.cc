#include "choose/ties.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <unordered_map>

#include "measure/blocks.h"

namespace collage {

namespace {

struct Row {
  size_t candidate, variant;
  const TargetCosts* costs;
  const Measured* figure;
  const VariantCost* searched;

  auto effect() const {
    const Variant& variant = searched->variant;
    return std::tie(variant.inputs, variant.outputs, searched->error);
  }
};

constexpr double kMost = 0.1;

double error_of(const Row& row, bool in_turns) {
  if (is_exact(*row.figure)) return 0;
  return in_turns ? error_in_turns(*row.figure) : standard_error(*row.figure);
}

bool is_surely_slower(const Row& row, const Row& fastest) {
  const bool in_turns = row.costs == fastest.costs &&
                        blocks_of(*row.figure).size() == blocks_of(*fastest.figure).size();
  const double error = std::hypot(error_of(row, in_turns), error_of(fastest, in_turns));
  const double least = fastest.searched->seconds;
  return row.searched->seconds - least > std::min(2 * error, kMost * least);
}

std::vector<Row> rows_of(std::span<const size_t> numbers,
                         const std::vector<CostedCandidate>& candidates,
                         const SearchProblem& problem) {
  std::vector<Row> rows;
  for (size_t c : numbers) {
    const TargetCosts& costs = *candidates[c].costs;
    for (size_t v = 0; v < costs.variants.size(); ++v) {
      const Measured* figure = measured(costs.variants[v].cost);
      const VariantCost& searched = problem.candidates[c].variants[v];
      if (figure != nullptr && searched.seconds < kInfinity)
        rows.push_back({c, v, &costs, figure, &searched});
    }
  }
  return rows;
}

}  // namespace

Understated settle_ties(const std::vector<CostedCandidate>& candidates, SearchProblem& problem) {
  constexpr double kLess = 1e-6;  // of the fastest one's figure: more than solvers take for equal
  std::vector<Target> targets;    // in their order
  std::unordered_map<IndexSet, std::vector<std::pair<size_t, size_t>>, IndexSetHash> same_nodes;
  for (size_t c = 0; c < candidates.size(); ++c) {
    if (candidates[c].is_host()) continue;
    const Target& target = candidates[c].partition.spec->target;
    const auto known = std::find(targets.begin(), targets.end(), target);
    const size_t place = static_cast<size_t>(known - targets.begin());
    if (known == targets.end()) targets.push_back(target);
    same_nodes[candidates[c].partition.sub_graph.inside()].emplace_back(place, c);
  }
  Understated result;
  for (auto& [nodes, places] : same_nodes) {
    std::sort(places.begin(), places.end());
    std::vector<size_t> numbers;
    for (const auto& [place, candidate] : places) numbers.push_back(candidate);
    std::vector<Row> rows = rows_of(numbers, candidates, problem);
    while (!rows.empty()) {
      const Row one = rows.front();
      const auto others = std::stable_partition(
          rows.begin(), rows.end(), [&](const Row& row) { return row.effect() == one.effect(); });
      const std::vector<Row> alike(rows.begin(), others);
      rows.erase(rows.begin(), others);
      const Row& fastest = *std::min_element(
          alike.begin(), alike.end(),
          [](const Row& a, const Row& b) { return a.searched->seconds < b.searched->seconds; });
      const Row& first = *std::find_if(alike.begin(), alike.end(), [&](const Row& row) {
        return !is_surely_slower(row, fastest);
      });
      if (&first == &fastest) continue;
      double& seconds = problem.candidates[first.candidate].variants[first.variant].seconds;
      const double lowered = (1 - kLess) * fastest.searched->seconds;
      result[{first.candidate, first.variant}] = seconds - lowered;
      seconds = lowered;
    }
  }
  return result;
}

}  // namespace collage
