// How errors of lowered kernels grow on their way to the outputs of a model.
//
// The estimate of a cover's error takes its kernels' errors as independent: the root of the sum of
// their squares, each as it was measured times what errors of its function grow by. That depends on
// the model, and is learnt by running covers that lower one function alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "choose/cover_search.h"
#include "cost/row_values.h"

namespace collage {

// Covers of candidates like these whose estimated errors are within `max_error`.
using FindCovers = std::function<Result<CoverSearch>(const std::vector<CostedCandidate>&,
                                                     double max_error, WantedCovers)>;
// What a cover's outputs err by; a failure is one beyond any budget.
using CoverError = std::function<Result<double>(const NamedCover&)>;

// A cover's estimated error, by those of the candidates.
double estimated_error(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);
bool has_lowered_variants(const CostedCandidate& candidate);

// The candidates with errors grown until the outputs; of functions that nobody lowered alone, by
// the median of the others.
std::vector<CostedCandidate> amplified(const std::vector<CostedCandidate>& candidates,
                                       const AmplificationTable& amplifications);

class ErrorAmplification {
 public:
  // All of them must outlive it. The candidates' errors are as measured.
  ErrorAmplification(const std::vector<CostedCandidate>& candidates, const FindCovers& find,
                     const CoverError& error_of)
      : candidates_(candidates), find_(find), error_of_(error_of) {}

  // What errors of the cover's lowered kernels grow by; whether any of it was not known.
  Result<bool> learn(const NamedCover& cover, AmplificationTable& known) const;

 private:
  // Those that round most of these lowered kernels as good as free, the others left out.
  std::vector<CostedCandidate> only_lowering(const TargetCosts* these) const;

  const std::vector<CostedCandidate>& candidates_;
  const FindCovers& find_;
  const CoverError& error_of_;
};

}  // namespace collage
