// Between costs and search: hands the costed candidates to the search (cover_problem.h), and gives
// the covers that are worth a timing: the cheapest one, and variations of the problem, each a row
// of a table (cover_variations.h).
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "choose/costing.h"
#include "lower/lowering.h"
#include "search/cover.h"

namespace collage {

// A cover in terms of costed candidates. Its `seconds` are what the search added up; those of its
// kernels and conversions add up to `plain_seconds`.
struct NamedCover : Cover {
  std::string name = {};        // "cover 1" … or the backend
  bool single_backend = false;  // and the host
  bool mostly_one = false;      // one backend, the rest by whoever is fastest
  double plain_seconds = 0;     // without charges for switching between thread pools
  size_t switches = 0;          // between thread pools, the last kernel followed by the first
  double overlap_seconds = 0;   // of plain_seconds, that devices save by computing side by side
  std::string text = {};        // identifies it among those of one model
  bool lowered = false;         // some kernel rounds to a smaller float type
  bool stays = false;           // it was there before: what is no faster does not take its place
  size_t toolchains = 0;        // but the host, and those that only place tensors in one another
  int priorities = 0;           // BackendTraits::priority of all kernels, added up
};

// Where the clock cannot tell covers apart, the first in this order is used: what was there before,
// then the fewest toolchains, the fewest kernels, the toolchains that are declared first.
inline auto declared_order(const NamedCover& cover) {
  return std::tuple(!cover.stays, cover.toolchains, cover.kernels.size(), cover.priorities,
                    std::string_view(cover.text));
}

// The candidates, which the covers' kernels number, are those that were searched, with the costs
// that were asked for on the way, then merged ones.
struct CoverSearch : ModelCosts {
  std::vector<NamedCover> covers;  // cheapest first, those of mostly one backend among them, then
                                   // the single-backend covers
  double lower_bound_seconds = 0;  // what the search adds up is no less for any cover
  bool exact = false;
  SearchCounts counts;        // of all searches on the way to these covers
  double search_seconds = 0;  // in the search alone, without measuring
  // What the cheapest cover may be too dear by, as a part of it.
  double gap() const {
    double cheapest = covers[0].seconds;
    return cheapest > 0 ? 1 - lower_bound_seconds / cheapest : 0;
  }
};

inline constexpr size_t kTopCovers = 6;

enum class WantedCovers { kAll, kCheapest };  // kCheapest: the first of them alone
struct SearchWishes {
  WantedCovers wanted = WantedCovers::kAll;
  double max_error = kInfinity;           // of each cover: SearchProblem::max_error
  const TargetChoice* targets = nullptr;  // which targets may meet in a cover; null: all of them
};
Result<CoverSearch> find_covers(const DataflowGraph& graph,
                                const std::vector<CostedCandidate>& candidates,
                                CostEstimator& estimator, const SearchWishes& wishes = {});
// With variations of the covers found among the covers, and the candidates that these need.
// `estimator` answers from `costs`.
Result<CoverSearch> with_variations(const Candidates& candidates, CoverSearch found,
                                    MeasuredCosts& costs, CostEstimator& estimator,
                                    const VariantDemands& demands);

class CoverProblem;
NamedCover named_cover(const CoverProblem& problem, std::string name, const Cover& cover);

const MeasuredVariant& row_of(const Cover::Kernel& kernel,
                              const std::vector<CostedCandidate>& candidates);
// The problem that a cover solves, as far as lowering reads it: the candidates and variants of the
// cover's kernels.
SearchProblem problem_of(const Cover& cover, const DataflowGraph& graph,
                         const std::vector<CostedCandidate>& candidates);
// Adds a cover of other candidates, those with their costs that are not the same as known ones.
void add_cover(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
               CoverSearch& found);
// What nobody was asked about gets the costs that it has in `asked`, which has the same candidates.
void adopt_costs(const std::vector<CostedCandidate>& asked,
                 std::vector<CostedCandidate>& candidates);

// The text that identifies a kernel of one model: its nodes, target and variant.
std::string kernel_text(const CandidatePartition& partition, const Variant& variant);

}  // namespace collage
