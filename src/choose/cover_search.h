// Between costs and search: hands the costed candidates to the search (cover_problem.h), and gives
// covers in terms of candidates: the cheapest few, and one for every single backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "choose/costing.h"
#include "lower/lowering.h"
#include "search/cover.h"

namespace collage {

struct CoverKernel {
  size_t candidate;                          // into the costed candidates
  size_t variant;                            // into its costs
  double seconds;                            // its part of plain_seconds
  std::shared_ptr<const TargetCosts> costs;  // as they were when the cover was found
  const MeasuredVariant& row() const { return costs->variants[variant]; }
};

struct NamedCover {  // a cover in terms of costed candidates
  std::string name;  // "cover 1" … or the backend
  bool single_backend = false;
  std::vector<CoverKernel> kernels;
  double predicted_seconds = 0;                    // what the search added up
  std::vector<ChosenConversion> conversions = {};  // as the search chose them, their seconds with
                                                   // the launch
  double plain_seconds = 0;    // the same without charges for switching between thread pools
  size_t switches = 0;         // between thread pools, the last kernel followed by the first
  double overlap_seconds = 0;  // of plain_seconds, that devices save by computing side by side
  bool mostly_one = false;     // one backend, the rest by whoever is fastest
};

struct CoverSearch {
  // What the covers' kernels number: the candidates that were searched, with the costs that were
  // asked for on the way; then merged ones (merged_cover.h).
  std::vector<CostedCandidate> candidates;
  std::vector<NamedCover> covers;  // cheapest first, those of mostly one backend among them, then
                                   // the single-backend covers
  double lower_bound_seconds = 0;  // what the search adds up is no less for any cover
  bool exact = false;
  SearchCounts counts;        // of all searches on the way to these covers
  double search_seconds = 0;  // in the search alone, without measuring
  // What the cheapest cover may be too dear by, as a part of it.
  double gap() const {
    double cheapest = covers[0].predicted_seconds;
    return cheapest > 0 ? 1 - lower_bound_seconds / cheapest : 0;
  }
};

inline constexpr size_t kTopCovers = 8;
// A single-backend cover exists where the backend does at least this part of the arithmetic; one of
// mostly that backend also where it does this part of what is moved.
inline constexpr double kSingleBackendWork = 0.9;

class CoverProblem;
NamedCover named_cover(const CoverProblem& problem, std::string name, bool single,
                       const Cover& cover);

enum class WantedCovers { kAll, kCheapest };  // kCheapest: the first of them alone
struct SearchWishes {
  WantedCovers wanted = WantedCovers::kAll;
  double max_error = kInfinity;  // of each cover: SearchProblem::max_error
};
Result<CoverSearch> find_covers(const DataflowGraph& graph,
                                const std::vector<CostedCandidate>& candidates,
                                CostEstimator& estimator, const SearchWishes& wishes = {});
// The same where some targets must not meet in one cover: for each set of targets (`specs` by
// index) that may, together cheapest first.
Result<CoverSearch> find_compatible_covers(const DataflowGraph& graph,
                                           const std::vector<CostedCandidate>& candidates,
                                           CostEstimator& estimator,
                                           const std::vector<PartitionSpecPtr>& specs,
                                           const std::vector<std::vector<size_t>>& sets,
                                           const SearchWishes& wishes = {});

// Candidates with the costs that were asked for while the covers were found.
std::vector<CostedCandidate> with_costs_of(const std::vector<NamedCover>& covers,
                                           std::vector<CostedCandidate> candidates);

KernelChoice kernel_choice(const CandidatePartition& partition, const Variant& variant);
// The text that identifies a kernel of one model: its nodes, target and variant.
std::string kernel_text(const CandidatePartition& partition, const Variant& variant);
// The text that identifies a cover among those of one model: its kernels'.
std::string cover_text(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);
// Whether some kernel of the cover rounds to a smaller float type.
bool is_lowered(const NamedCover& cover);

}  // namespace collage
