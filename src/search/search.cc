#include "search/search.h"

#include <algorithm>
#include <limits>
#include <set>

#include "search/alternatives.h"
#include "search/decode.h"
#include "search/order.h"
#include "search/scan.h"

namespace collage {

namespace {

using search::CompactProblem;
using search::Potentials;
using search::Scan;
using search::ScanResult;

constexpr size_t kFirstWidth = 32;
constexpr size_t kWiden = 8;
constexpr size_t kMaxForced = 16;  // sets of incompatible columns tried

bool disjoint(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.empty();
}

// One search: the linear program first, which bounds every cover and mostly is one; else the scan.
class Searcher {
 public:
  Searcher(const CompactProblem& compact, const SearchOptions& options)
      : compact_(compact), options_(options), start_(search::now()) {}

  Result<SearchResult> run() {
    potentials_ = search::solve_potentials(compact_, options_.max_seconds / 2);
    order_ = search::narrow_order(compact_);
    double bound = potentials_.bound;
    if (auto cover = search::decode_solution(compact_, order_, potentials_.solution))
      result_.covers = {std::move(*cover)};
    result_.counts = {1, reaches(bound) ? size_t{1} : size_t{0}};
    if (!reaches(bound)) bound = std::max(bound, scan());
    if (result_.covers.empty()) return unsupported("no choice of kernels covers the whole graph");
    if (compact_.complete) result_.lower_bound = std::min(result_.covers[0].seconds, bound);
    result_.exact = reaches(result_.lower_bound);
    result_.seconds = search::now() - start_;
    return std::move(result_);
  }

  // Covers next to the best one.
  std::vector<Cover> near_best(const Cover& best, size_t count, size_t& states) const {
    return search::near_best(compact_, potentials_, order_, best, count, states);
  }

 private:
  double upper_bound() const {
    return result_.covers.empty() ? kInfinity : result_.covers[0].seconds * (1 - 1e-12);
  }

  bool reaches(double bound) const {
    return !result_.covers.empty() && result_.covers[0].seconds <= bound * (1 + 1e-9);
  }

  // Where the linear program's solution is no cover, or a dearer one: what covers cost at least, as
  // far as this finds out.
  double scan() {
    const std::vector<bool> all(compact_.columns.size(), true);
    if (result_.covers.empty()) first_cover(all);
    if (reaches(potentials_.bound)) return potentials_.bound;
    const double bound = improve(order_, all);
    const Scan rest(compact_, potentials_, order_, promising(all, upper_bound()));
    return std::min(bound, force(rest.incompatible()));
  }

  // The usable columns that a better cover than the best known may use.
  std::vector<bool> promising(const std::vector<bool>& usable, double limit) const {
    std::vector<bool> result = usable;
    for (size_t c = 0; c < result.size(); ++c)
      result[c] = result[c] && potentials_.bound + potentials_.reduced[c] < limit;
    return result;
  }

  // Some good cover soon: from the columns closest to the bound. Not even time ends this: without a
  // cover nothing can be compiled.
  void first_cover(const std::vector<bool>& all) {
    for (double slack : {1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1}) {
      const Scan scan(compact_, potentials_, order_,
                      promising(all, potentials_.bound * (1 + slack)));
      if (take(scan.run(kFirstWidth, upper_bound(), 0))) return;
    }
  }

  // A scan's cover, where it found one, is better than the best known.
  bool take(const ScanResult& found) {
    result_.states += found.states;
    if (found.cover) result_.covers = {*found.cover};
    return found.cover.has_value();
  }

  // Passes wider and wider where the one before was too narrow, until one is complete or the budget
  // is spent. What covers in this order cost at least, unless they are no better than the best
  // known: infinity then.
  double improve(const std::vector<uint32_t>& order, const std::vector<bool>& usable) {
    double bound = 0;
    std::vector<size_t> widths(order.size() + 1, kFirstWidth);
    for (;;) {
      const Scan scan(compact_, potentials_, order, promising(usable, upper_bound()));
      const ScanResult found = scan.run({widths, upper_bound(), deadline()});
      take(found);
      if (found.complete || found.dropped >= upper_bound())
        return scan.all_detours() ? kInfinity : bound;
      bound = std::max(bound, found.dropped);
      for (size_t layer = 0; layer < widths.size(); ++layer)
        if (found.narrow[layer]) widths[layer] *= kWiden;
      // By states, not by time, so that equal problems get equal answers on a busy machine.
      if (result_.states + kWiden / 2 * found.states > options_.max_states ||
          search::now() > deadline())
        return bound;
    }
  }
  double deadline() const { return start_ + options_.max_seconds; }

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
        if (search::contracted_order(compact_, order_, together).empty()) together.pop_back();
      }
      choices.push_back(together);
      for (size_t r = 0; r < regions.size() && choices.size() < kMaxForced; ++r)
        choices.push_back({regions[r]});
    }
    double bound = all ? kInfinity : 0;
    for (const auto& choice : choices) {
      std::vector<uint32_t> order = search::contracted_order(compact_, order_, choice);
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

constexpr size_t kQuickStates = 20'000;  // one narrow pass
// Seconds added to each kernel and conversion. Costs that were measured minutes apart differ by
// noise, which now and then makes two kernels look cheaper than the one that fuses them: by a
// little, or, where somebody disturbed that one, by a lot.
constexpr double kLaunchPerturbations[] = {15e-6, 150e-6};
constexpr double kWorthTiming = 1.15;  // an alternative may cost that much more than the best

// Covers that avoid what predictions are worst at, where they are not much dearer: those of one
// target (its kernels may slow down its neighbours'), and many small kernels.
std::vector<Cover> robust_alternatives(const SearchProblem& problem, const Cover& best,
                                       const SearchOptions& options, SearchResult& total) {
  std::vector<Cover> result;
  SearchOptions quick = options;
  quick.max_states = kQuickStates;
  auto search = [&](const SearchProblem& variation, const std::vector<bool>& allowed) {
    Result<CompactProblem> compact = search::make_compact(variation, allowed);
    if (!compact.ok()) return;
    Result<SearchResult> found = Searcher(*compact, quick).run();
    if (!found.ok()) return;
    total.states += found->states;
    total.counts += found->counts;
    Cover cover = std::move(found->covers[0]);
    cover.seconds -= (variation.launch_penalty - problem.launch_penalty) *
                     static_cast<double>(cover.kernels.size() + cover.conversions.size());
    if (cover.seconds <= kWorthTiming * best.seconds) result.push_back(std::move(cover));
  };
  std::set<Target> used;
  for (const ChosenKernel& kernel : best.kernels)
    used.insert(problem.candidates[kernel.candidate].candidate->spec->target);
  for (const Target& target : used) {
    if (used.size() == 1) break;
    std::vector<bool> allowed;
    for (const CandidateCosts& costs : problem.candidates)
      allowed.push_back(costs.candidate->spec->target != target);
    search(problem, allowed);
  }
  for (const double seconds : kLaunchPerturbations) {
    SearchProblem perturbed = problem;
    perturbed.launch_penalty += seconds;
    search(perturbed, {});
  }
  return result;
}

// The operators that some candidate of the target computes.
IndexSet held_by(const Target& target, const SearchProblem& problem) {
  IndexSet held;
  for (const CandidateCosts& costs : problem.candidates)
    if (costs.candidate->spec->target == target && !costs.variants.empty())
      held |= costs.candidate->sub_graph.inside();
  return held;
}

}  // namespace

Result<SearchResult> search_covers(const SearchProblem& problem, const SearchOptions& options) {
  double start = search::now();
  CompactProblem compact = TRY(search::make_compact(problem));
  Searcher searcher(compact, options);
  SearchResult result = TRY(searcher.run());
  if (options.top_k > 1) {
    const Cover best = result.covers[0];
    std::vector<Cover> others = robust_alternatives(problem, best, options, result);
    auto cheaper = [](const Cover& a, const Cover& b) { return a.seconds < b.seconds; };
    std::sort(others.begin(), others.end(), cheaper);
    std::set<search::Signature> seen = {search::signature(compact, best)};
    auto take = [&](std::vector<Cover>& covers) {
      for (Cover& cover : covers)
        if (result.covers.size() < options.top_k &&
            seen.insert(search::signature(compact, cover)).second)
          result.covers.push_back(std::move(cover));
    };
    take(others);
    if (result.covers.size() < options.top_k) {
      others = searcher.near_best(best, options.top_k, result.states);
      take(others);
    }
    std::sort(result.covers.begin() + 1, result.covers.end(), cheaper);
  }
  result.seconds = search::now() - start;
  return result;
}

Result<SearchResult> single_backend_cover(const SearchProblem& problem, const Target& target,
                                          const Target& host, const SearchOptions& options) {
  const IndexSet held = held_by(target, problem);
  std::vector<bool> strict, relaxed;
  for (const CandidateCosts& costs : problem.candidates) {
    const Target& own = costs.candidate->spec->target;
    const IndexSet& inside = costs.candidate->sub_graph.inside();
    strict.push_back(own == target || (own == host && !inside.intersects(held)));
    relaxed.push_back(own == target || own == host);
  }
  // The host takes over nodes of the target only where its candidates do not fit together.
  Result<CompactProblem> compact = search::make_compact(problem, strict);
  if (compact.ok()) {
    Result<SearchResult> result = Searcher(*compact, options).run();
    if (result.ok()) return result;
  }
  compact = search::make_compact(problem, relaxed);
  if (!compact.ok())
    return std::move(compact).status().with_context(target.to_string() + " with " +
                                                    host.to_string() + " alone");
  return Searcher(*compact, options).run();
}

Result<SearchResult> mostly_one_backend_cover(const SearchProblem& problem, const Target& target,
                                              const SearchOptions& options) {
  const IndexSet held = held_by(target, problem);
  std::vector<bool> usable;
  for (const CandidateCosts& costs : problem.candidates)
    usable.push_back(costs.candidate->spec->target == target ||
                     !costs.candidate->sub_graph.inside().intersects(held));
  const CompactProblem compact = TRY(search::make_compact(problem, usable));
  return Searcher(compact, options).run();
}

}  // namespace collage
