// CoverProblem: the search problem of costed candidates: measured costs where there are some, what
// conversions cost (measured when the search asks), and charges for what the timing of single
// kernels cannot see.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "compiler/costing.h"
#include "search/cover.h"

namespace collage {

class CoverProblem {
 public:
  // Charged for a kernel with threads of its own: as if it stood alone among kernels of the team,
  // one pool parked and the other woken before and after. Prediction counts switches instead.
  static constexpr double kPoolSwitch = 100e-6;
  // Between kernels: the executor's dispatch. Measured kernels carry their own call overhead.
  static constexpr double kLaunchPenalty = 0.5e-6;

  // Candidates without costs get a stand-in, until measure_unknown() replaces it.
  CoverProblem(const DataflowGraph& graph, std::vector<CostedCandidate>& candidates,
               MeasuredCosts& costs);
  CoverProblem(const CoverProblem&) = delete;
  CoverProblem& operator=(const CoverProblem&) = delete;

  const SearchProblem& problem() const { return problem_; }
  // The problem without the target's candidates that lie inside another usable one of its own: what
  // is left of them are the regions that a whole-sub-graph toolchain would take by itself.
  SearchProblem with_maximal_regions(const Target& target) const;

  // Searches until every kernel of every cover found has been measured.
  template <typename Search>
  Result<SearchResult> settle(Search&& search) {
    for (int round = 0;; ++round) {
      const double converting_before = converting_seconds_;
      SearchResult result = TRY(search());
      search_seconds_ += result.seconds - (converting_seconds_ - converting_before);
      if (round == kMaxRounds || !TRY(measure_unknown(result))) return result;
    }
  }

  // Which of its candidate's costs a kernel of a cover is.
  size_t costed_variant(const ChosenKernel& kernel) const {
    return variants_[kernel.candidate][kernel.variant];
  }
  // The other way round; none where those costs are not the problem's (invalid).
  std::optional<size_t> problem_variant(size_t candidate, size_t costed) const;
  bool own_pool(const ChosenKernel& kernel) const;
  double search_seconds() const { return search_seconds_; }
  Status conversion_failure() const { return failure_; }

 private:
  // More rounds than this change nothing that matters.
  static constexpr int kMaxRounds = 6;

  void fill(size_t c);
  double conversion_seconds(const TensorType& type, const Encoding& from, const Encoding& to);
  // Measures what the covers use and nobody measured; true when something was.
  Result<bool> measure_unknown(const SearchResult& result);

  std::vector<CostedCandidate>& candidates_;
  MeasuredCosts& costs_;
  SearchProblem problem_;
  std::vector<std::vector<size_t>>
      variants_;  // of a candidate: which of its costs each of the problem's variants is
  std::map<std::tuple<std::string, Encoding, Encoding>, double> conversions_;
  Status failure_;
  double search_seconds_ = 0;      // without the measuring that the search waited for
  double converting_seconds_ = 0;  // of that measuring: conversions are measured when asked for
};

}  // namespace collage
