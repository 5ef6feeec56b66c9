#include "search/search.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

#include "search/scan.h"

namespace collage {

namespace {

using search::CompactProblem;
using search::Potentials;
using search::Scan;
using search::ScanOptions;
using search::ScanResult;
using search::Step;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kFirstWidth = 32;
constexpr size_t kWiden = 8;
constexpr size_t kMaxForced = 16;  // sets of incompatible columns tried

bool disjoint(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.empty();
}

// Nodes in an order that keeps few tensors live: depth first from the results, of several inputs
// the deepest first, so that a short branch is decided just before it joins a long one.
std::vector<uint32_t> narrow_order(const CompactProblem& compact) {
  size_t n = compact.nodes.size();
  std::vector<std::vector<uint32_t>> inputs(n + 1);  // the last one stands for all results
  std::vector<size_t> depth(n, 0);
  std::vector<bool> used(n, false);
  for (const search::Group& group : compact.groups)
    for (uint32_t reader : group.readers)
      if (group.root >= 0) {
        inputs[reader].push_back(static_cast<uint32_t>(group.root));
        used[static_cast<size_t>(group.root)] = true;
      }
  for (uint32_t i = 0; i < n; ++i) {  // numbers are a dataflow order already
    for (uint32_t input : inputs[i]) depth[i] = std::max(depth[i], depth[input] + 1);
    if (!used[i]) inputs[n].push_back(i);
  }
  for (std::vector<uint32_t>& list : inputs)
    std::stable_sort(list.begin(), list.end(),
                     [&](uint32_t a, uint32_t b) { return depth[a] > depth[b]; });
  std::vector<uint32_t> order, stack = {static_cast<uint32_t>(n)};
  std::vector<size_t> next(n + 1, 0);
  std::vector<bool> seen(n, false);
  while (!stack.empty()) {
    uint32_t at = stack.back();
    if (next[at] < inputs[at].size()) {
      uint32_t input = inputs[at][next[at]++];
      if (seen[input]) continue;
      seen[input] = true;
      stack.push_back(input);
    } else {
      stack.pop_back();
      if (at < n) order.push_back(at);
    }
  }
  return order;
}

// A dataflow order in which each of some disjoint node sets is contiguous, as close as possible to
// `base`; empty when they wait for one another.
std::vector<uint32_t> contracted_order(const CompactProblem& compact,
                                       const std::vector<uint32_t>& base,
                                       const std::vector<std::vector<uint32_t>>& regions) {
  size_t n = compact.nodes.size();
  std::vector<uint32_t> unit(n), rank(n);  // a unit is named by one of its nodes
  for (uint32_t i = 0; i < n; ++i) unit[i] = i, rank[base[i]] = i;
  for (const std::vector<uint32_t>& region : regions)
    for (uint32_t node : region) unit[node] = region[0];
  std::vector<std::vector<uint32_t>> members(n), users(n);
  std::vector<size_t> waiting(n, 0);
  for (uint32_t i = 0; i < n; ++i) members[unit[base[i]]].push_back(base[i]);
  for (const search::Group& group : compact.groups)
    for (uint32_t reader : group.readers) {
      if (group.root < 0) continue;
      uint32_t from = unit[static_cast<size_t>(group.root)], to = unit[reader];
      if (from == to) continue;
      users[from].push_back(to);
      ++waiting[to];
    }
  using Ready = std::pair<uint32_t, uint32_t>;  // rank, unit
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (uint32_t u = 0; u < n; ++u)
    if (unit[u] == u && waiting[u] == 0) ready.push({rank[u], u});
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    uint32_t u = ready.top().second;
    ready.pop();
    order.insert(order.end(), members[u].begin(), members[u].end());
    for (uint32_t user : users[u])
      if (--waiting[user] == 0) ready.push({rank[user], user});
  }
  if (order.size() != n) order.clear();
  return order;
}

class Searcher {
 public:
  Searcher(const CompactProblem& compact, const SearchOptions& options)
      : compact_(compact), options_(options), start_(search::now()) {}

  Result<SearchResult> run() {
    potentials_ = search::solve_potentials(compact_, options_.max_seconds / 2);
    order_ = narrow_order(compact_);
    const std::vector<uint32_t>& order = order_;
    std::vector<bool> all(compact_.columns.size(), true);
    first_cover(order);
    double bound = improve(order, all);
    bound = std::min(bound, force(incompatible(order)));
    if (result_.covers.empty()) return unsupported("no choice of kernels covers the whole graph");
    double best = result_.covers[0].seconds;
    result_.lower_bound = std::min(best, std::max(bound, potentials_.bound));
    result_.exact = best <= result_.lower_bound * (1 + 1e-9);
    result_.seconds = search::now() - start_;
    return std::move(result_);
  }

 private:
  double upper_bound() const {
    return result_.covers.empty() ? kInfinity : result_.covers[0].seconds * (1 - 1e-12);
  }

  // The usable columns that a better cover than the best known may use.
  std::vector<bool> promising(const std::vector<bool>& usable, double limit) const {
    std::vector<bool> result = usable;
    for (size_t c = 0; c < result.size(); ++c)
      result[c] = result[c] && potentials_.bound + potentials_.reduced[c] < limit;
    return result;
  }

  // Some good cover soon: from the columns closest to the bound.
  void first_cover(const std::vector<uint32_t>& order) {
    std::vector<bool> all(compact_.columns.size(), true);
    for (double slack : {1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1}) {
      Scan scan(compact_, potentials_, order, promising(all, potentials_.bound * (1 + slack)));
      ScanResult found = scan.run({kFirstWidth, upper_bound(), deadline()});
      result_.states += found.states;
      if (found.found) result_.covers = {scan.decode(found.steps)};
      if (found.found) return;
    }
  }

  // Wider and wider passes, until one is complete or the budget is spent. What covers in this order
  // cost at least, unless they are no better than the best known: infinity then.
  double improve(const std::vector<uint32_t>& order, const std::vector<bool>& usable) {
    double bound = 0;
    for (size_t width = kFirstWidth;; width *= kWiden) {
      Scan scan(compact_, potentials_, order, promising(usable, upper_bound()));
      ScanResult found = scan.run({width, upper_bound(), deadline()});
      result_.states += found.states;
      if (found.found) result_.covers = {scan.decode(found.steps)};
      if (found.complete || found.dropped >= upper_bound()) return kInfinity;
      bound = std::max(bound, found.dropped);
      // By states, not by time, so that equal problems get equal answers on a busy machine.
      if (result_.states + kWiden * found.states > options_.max_states ||
          search::now() > deadline())
        return bound;
    }
  }
  double deadline() const { return start_ + options_.max_seconds; }

  // Columns that could improve on the best cover but cannot be applied in this order.
  std::vector<uint32_t> incompatible(const std::vector<uint32_t>& order) const {
    std::vector<bool> all(compact_.columns.size(), true);
    return Scan(compact_, potentials_, order, promising(all, upper_bound())).incompatible();
  }

  // Columns that the scan cannot place are forced, in all combinations while they are few, else one
  // by one and all that fit together. The bound as improve() gives it.
  double force(const std::vector<uint32_t>& incompatible) {
    std::vector<std::vector<uint32_t>> regions;
    for (uint32_t c : incompatible) regions.push_back(compact_.columns[c].nodes);
    std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
    std::vector<std::vector<std::vector<uint32_t>>> choices;
    bool all = list_choices(regions, 0, {}, choices);
    if (!all) {
      choices.clear();
      std::vector<std::vector<uint32_t>> together;
      for (const std::vector<uint32_t>& region : regions) {
        bool fits = std::all_of(together.begin(), together.end(),
                                [&](const auto& other) { return disjoint(region, other); });
        if (!fits) continue;
        together.push_back(region);
        if (contracted_order(compact_, order_, together).empty()) together.pop_back();
      }
      choices.push_back(together);
      for (size_t r = 0; r < regions.size() && choices.size() < kMaxForced; ++r)
        choices.push_back({regions[r]});
    }
    double bound = all ? kInfinity : 0;
    for (const auto& choice : choices) {
      std::vector<uint32_t> order = contracted_order(compact_, order_, choice);
      if (order.empty()) continue;
      std::vector<bool> usable(compact_.columns.size());
      for (size_t c = 0; c < usable.size(); ++c)
        usable[c] = std::all_of(choice.begin(), choice.end(), [&](const auto& region) {
          return region == compact_.columns[c].nodes || disjoint(region, compact_.columns[c].nodes);
        });
      bound = std::min(bound, improve(order, usable));
    }
    return bound;
  }

  // Every non-empty set of disjoint regions; false when there are too many.
  static bool list_choices(const std::vector<std::vector<uint32_t>>& regions, size_t from,
                           const std::vector<std::vector<uint32_t>>& chosen,
                           std::vector<std::vector<std::vector<uint32_t>>>& choices) {
    for (size_t r = from; r < regions.size(); ++r) {
      if (!std::all_of(chosen.begin(), chosen.end(),
                       [&](const auto& other) { return disjoint(regions[r], other); }))
        continue;
      std::vector<std::vector<uint32_t>> longer = chosen;
      longer.push_back(regions[r]);
      if (choices.size() == kMaxForced) return false;
      choices.push_back(longer);
      if (!list_choices(regions, r + 1, longer, choices)) return false;
    }
    return true;
  }

  const CompactProblem& compact_;
  const SearchOptions& options_;
  double start_;
  Potentials potentials_;
  std::vector<uint32_t> order_;
  SearchResult result_;
};

}  // namespace

Result<SearchResult> search_covers(const SearchProblem& problem, const SearchOptions& options) {
  CompactProblem compact = TRY(search::make_compact(problem));
  return Searcher(compact, options).run();
}

Result<SearchResult> single_backend_cover(const SearchProblem& problem, const std::string& target,
                                          const std::string& host, const SearchOptions& options) {
  IndexSet held;
  for (const CandidateCosts& costs : problem.candidates)
    if (costs.candidate->spec->target.kind == target && !costs.variants.empty())
      held |= costs.candidate->sub_graph.inside();
  std::vector<bool> strict, relaxed;
  for (const CandidateCosts& costs : problem.candidates) {
    const std::string& kind = costs.candidate->spec->target.kind;
    const IndexSet& inside = costs.candidate->sub_graph.inside();
    strict.push_back(kind == target || (kind == host && !inside.intersects(held)));
    relaxed.push_back(kind == target || kind == host);
  }
  // The host takes over nodes of the target only where its candidates do not fit together.
  Result<CompactProblem> compact = search::make_compact(problem, strict);
  if (compact.ok()) {
    Result<SearchResult> result = Searcher(*compact, options).run();
    if (result.ok()) return result;
  }
  compact = search::make_compact(problem, relaxed);
  if (!compact.ok())
    return std::move(compact).status().with_context(target + " with " + host + " alone");
  return Searcher(*compact, options).run();
}

}  // namespace collage
