#include "search/search.h"

#include <algorithm>
#include <set>

#include "base/stopwatch.h"
#include "search/cover_program.h"

namespace collage {

namespace {

using search::CompactProblem;
using search::CoverProgram;
using search::CoverSolution;
using search::SolverLimits;
using search::Variation;

constexpr SolverLimits kAlternativeLimits = {100, 10};
// Seconds added to each kernel and conversion. Costs that were measured minutes apart differ by
// noise, which now and then makes two kernels look cheaper than the one that fuses them: by a
// little, or, where somebody disturbed that one, by a lot.
constexpr double kLaunchPerturbations[] = {15e-6, 150e-6};
constexpr double kWorthTiming = 1.15;  // an alternative may cost that much more than the best
// Where errors are limited, which of some equal kernels may err is one of many choices that cost
// about the same: to tell them apart is worth no branches.
constexpr double kGapWithinErrors = 1e-3;

// The candidates whose target and nodes `allowed` accepts.
template <typename Allowed>
std::vector<bool> usable(const SearchProblem& problem, Allowed&& allowed) {
  std::vector<bool> result;
  for (const CandidateCosts& costs : problem.candidates)
    result.push_back(allowed(costs.candidate->spec->target, costs.candidate->sub_graph.inside()));
  return result;
}

// The operators that some candidate of the target computes.
IndexSet held_by(const Target& target, const SearchProblem& problem) {
  IndexSet held;
  for (const CandidateCosts& costs : problem.candidates)
    if (costs.candidate->spec->target == target && costs.is_usable())
      held |= costs.candidate->sub_graph.inside();
  return held;
}

std::vector<Variation> robust_variations(const SearchProblem& problem, const Cover& best) {
  std::vector<Variation> result;
  std::set<Target> used;
  for (const Cover::Kernel& kernel : best.kernels)
    used.insert(problem.candidates[kernel.candidate].candidate->spec->target);
  for (const Target& target : used)
    if (used.size() > 1)
      result.push_back({kWithoutOneTarget, usable(problem, [&](const Target& own, const IndexSet&) {
                          return own != target;
                        })});
  for (const double seconds : kLaunchPerturbations) result.push_back({kFewerKernels, {}, seconds});
  return result;
}

class Searcher {
 public:
  Searcher(const CompactProblem& compact, const SearchOptions& options)
      : program_(compact),
        gap_(compact.problem->max_error < kInfinity ? kGapWithinErrors : 0),
        options_(options) {}

  Result<SearchResult> run(const Variation& variation = {}) {
    CoverSolution solution = TRY(solve({options_.max_branches, options_.max_seconds}, variation));
    const double seconds = solution.cover.seconds;
    result_.lower_bound = solution.proven ? seconds : std::min(seconds, solution.bound);
    result_.exact = solution.proven;
    result_.covers.push_back(std::move(solution.cover));
    result_.seconds = watch_.seconds();
    return result_;
  }

  // The covers next to the best one, behind it.
  Result<SearchResult> add_alternatives(const std::vector<Variation>& variations) {
    std::set<std::vector<uint32_t>> seen = {program_.kernels_of(result_.covers[0])};
    std::vector<Cover> others;
    const auto is_worth_timing = [&](const CoverSolution& found) {
      return found.cover.seconds <= kWorthTiming * result_.covers[0].seconds;
    };
    const auto cheaper = [](const Cover& a, const Cover& b) { return a.seconds < b.seconds; };
    for (const Variation& variation : variations) {
      Result<CoverSolution> found = solve(kAlternativeLimits, variation);
      if (found.ok() && is_worth_timing(*found) &&
          seen.insert(program_.kernels_of(found->cover)).second)
        others.push_back(std::move(found->cover));
    }
    std::sort(others.begin(), others.end(), cheaper);
    if (others.size() >= options_.top_k) others.resize(options_.top_k - 1);
    // Each of the next best ones differs from the best in a kernel in which those before it do not.
    // One there is whatever it costs, where there is one: a kernel of the best may prove wrong.
    std::vector<uint32_t> kept = program_.kernels_of(result_.covers[0]);
    while (others.size() + 1 < options_.top_k && !kept.empty()) {
      program_.exclude(kept);
      Result<CoverSolution> found = solve(kAlternativeLimits, {kNextBest});
      if (!found.ok() || (!others.empty() && !is_worth_timing(*found))) break;
      const std::vector<uint32_t> kernels = program_.kernels_of(found->cover);
      std::erase_if(kept, [&](uint32_t kernel) {
        return !std::binary_search(kernels.begin(), kernels.end(), kernel);
      });
      if (seen.insert(kernels).second) others.push_back(std::move(found->cover));
    }
    std::sort(others.begin(), others.end(), cheaper);
    for (Cover& cover : others) result_.covers.push_back(std::move(cover));
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

 private:
  Result<CoverSolution> solve(SolverLimits limits, const Variation& variation) {
    limits.gap = gap_;
    CoverSolution solution = TRY(program_.solve(limits, variation));
    solution.cover.origin = variation.origin;
    result_.counts += {1,
                       solution.from_linear_program ? size_t{1} : size_t{0},
                       solution.branches,
                       {{variation.origin, 1}}};
    return solution;
  }

  const Stopwatch watch_;
  CoverProgram program_;
  const double gap_;
  const SearchOptions& options_;
  SearchResult result_;
};

}  // namespace

Result<SearchResult> search_covers(const SearchProblem& problem, const SearchOptions& options) {
  const CompactProblem compact = TRY(search::make_compact(problem));
  Searcher searcher(compact, options);
  SearchResult result = TRY(searcher.run());
  if (options.top_k <= 1) return result;
  return searcher.add_alternatives(robust_variations(problem, result.covers[0]));
}

SearchProblem restricted(SearchProblem problem, const Allows& allows) {
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v)
      if (!allows(c, v)) problem.candidates[c].variants[v].seconds = kInfinity;
  return problem;
}

Result<SearchResult> single_backend_cover(const SearchProblem& problem, const Target& target,
                                          const Target& host, const SearchOptions& options) {
  const IndexSet held = held_by(target, problem);
  const CompactProblem compact = TRY(search::make_compact(problem));
  Searcher searcher(compact, options);
  Result<SearchResult> result =
      searcher.run({kCheapest, usable(problem, [&](const Target& own, const IndexSet& inside) {
                      return own == target || (own == host && !inside.intersects(held));
                    })});
  if (result.ok()) return result;
  // The host takes over nodes of the target only where its candidates do not fit together.
  return searcher.run({kCheapest, usable(problem, [&](const Target& own, const IndexSet&) {
                         return own == target || own == host;
                       })});
}

Result<SearchResult> mostly_one_backend_cover(const SearchProblem& problem, const Target& target,
                                              const SearchOptions& options) {
  const IndexSet held = held_by(target, problem);
  const CompactProblem compact = TRY(search::make_compact(problem));
  return Searcher(compact, options)
      .run({kCheapest, usable(problem, [&](const Target& own, const IndexSet& inside) {
              return own == target || !inside.intersects(held);
            })});
}

}  // namespace collage
