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

#include "compiler/cover_search.h"
#include "cost/row_values.h"

namespace collage {

// Covers of candidates like these, as CoverSearch lists them.
using FindCovers = std::function<Result<CoverSearch>(std::vector<CostedCandidate>&)>;
// What a cover's outputs err by; a failure is one beyond any budget.
using CoverError = std::function<Result<double>(const NamedCover&)>;

const MeasuredVariant& row_of(const CoverKernel& kernel,
                              const std::vector<CostedCandidate>& candidates);
// The square of a cover's estimated error.
double squared_error(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);
bool has_lowered_variants(const CostedCandidate& candidate);

// The candidates' errors become those of `given`, grown; of functions that nobody lowered alone, by
// the median of the others.
void apply_growths(const std::vector<CostedCandidate>& given, const GrowthTable& growths,
                   std::vector<CostedCandidate>& candidates);

class ErrorGrowth {
 public:
  // All of them must outlive it. The candidates' errors are still as measured.
  ErrorGrowth(std::vector<CostedCandidate>& candidates, const FindCovers& find,
              const CoverError& error_of)
      : candidates_(candidates), given_(candidates), find_(find), error_of_(error_of) {}

  // What errors of the cover's lowered kernels grow by, applied to the candidates; whether any of
  // it was not known.
  Result<bool> learn(const NamedCover& cover, GrowthTable& known);

 private:
  // Those that round most of these lowered kernels as good as free, the others left out.
  std::vector<CostedCandidate> only_lowering(const TargetCosts* these) const;

  std::vector<CostedCandidate>& candidates_;
  const std::vector<CostedCandidate> given_;  // with errors as measured
  const FindCovers& find_;
  const CoverError& error_of_;
};

}  // namespace collage
