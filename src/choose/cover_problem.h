// CoverProblem: the search problem of costed candidates, and the loop between searching and
// measuring. Costs that nobody measured enter by their estimate; what the covers found use of them
// is asked for, and the search goes again, until covers rest on answers alone. The search itself is
// a pure function of the problem.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "choose/costing.h"
#include "choose/ties.h"
#include "cost/estimator.h"
#include "partition/stated_places.h"
#include "search/cover.h"

namespace collage {

// What the timing of single kernels cannot see.
struct CoverCharges {
  // For each kernel and conversion: the executor's dispatch. Measured kernels carry their own call
  // overhead.
  double launch = 0.5e-6;
  // For a kernel with threads of its own: as if it stood alone among kernels of the team, one pool
  // parked and the other woken before and after. Prediction counts switches instead.
  double pool_switch = 100e-6;
  bool views_need_kernels = false;  // they are not left to the host for nothing
  double max_error = kInfinity;     // of a cover
};

class CoverProblem {
 public:
  // The graph and the estimator must outlive it. Of candidates without costs (the host's) the
  // estimator is asked when a cover uses them.
  CoverProblem(const DataflowGraph& graph, std::vector<CostedCandidate> candidates,
               CostEstimator& estimator, const CoverCharges& charges = {});
  CoverProblem(const CoverProblem&) = delete;
  CoverProblem& operator=(const CoverProblem&) = delete;

  // With what was answered so far. Candidates and their variants are numbered as in costs.
  const SearchProblem& problem() const { return problem_; }
  const std::vector<CostedCandidate>& candidates() const { return candidates_; }
  const CoverCharges& charges() const { return charges_; }
  // The target's candidates that lie inside another usable one of its own. Without these its
  // regions are those that a whole-sub-graph toolchain would take by itself.
  std::set<size_t> inside_others(const Target& target) const;
  // One more candidate: its number.
  size_t add(CostedCandidate candidate);
  // What a candidate costs by an answer that somebody else was asked for.
  void answer(size_t candidate, std::shared_ptr<const TargetCosts> costs);

  // Searches until the estimator was asked for all that the covers found use.
  template <typename Search>
  Result<SearchResult> settle(Search&& search) {
    while (true) {
      Result<SearchResult> searched = search();
      if (!searched && graph_.stated_places().state_scopes())
        return std::move(searched).status().with_context("with the memory scopes that are stated");
      SearchResult result = TRY(std::move(searched));
      search_seconds_ += result.seconds;
      counts_ += result.counts;
      if (!TRY(ask_for(result.covers))) return result;
    }
  }
  bool own_pool(const Cover::Kernel& kernel) const;
  // The seconds by which the problem has the kernel at less than its figure (ties.h).
  double understated(const Cover::Kernel& kernel) const;
  double search_seconds() const { return search_seconds_; }
  const SearchCounts& counts() const { return counts_; }

 private:
  using ConversionKey = std::tuple<std::string, Encoding, Encoding>;

  void number(CostedCandidate& candidate);
  void fill(size_t c);
  void fill_all();
  void settle_ties();
  double conversion_seconds(const TensorType& type, const Encoding& from, const Encoding& to);
  TensorType type_of(const TensorRef& tensor) const;
  // What the covers use and nobody was asked for yet; whether there was any of it.
  Result<bool> ask_for(const std::vector<Cover>& covers);
  Result<bool> ask_for(const ChosenConversion& conversion);

  const DataflowGraph& graph_;
  std::vector<CostedCandidate> candidates_;
  CostEstimator& estimator_;
  const CoverCharges charges_;
  SearchProblem problem_;
  Understated understated_;
  std::map<ConversionKey, std::optional<ConversionRow>> conversions_;  // none: at its estimate
  std::set<std::pair<size_t, size_t>> asked_;  // candidates and which of their costs
  // Nobody can be asked, as after an interrupt: covers do without what is not known, but on the
  // host.
  bool only_known_;
  double search_seconds_ = 0;
  SearchCounts counts_;
};

}  // namespace collage
