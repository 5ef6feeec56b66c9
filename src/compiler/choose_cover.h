// Choosing by the clock: lowers the covers, checks each against the reference (cover_checks.h),
// times them end to end (cover_contest.h), and keeps the fastest. Figures are cached cover by
// cover, so a warm compile lowers only the winner, and what they teach corrects predictions of
// other models. A cover that was timed with other weights is checked with this model's before it is
// chosen; where it is wrong the next one is taken.
#pragma once

#include "compiler/compile.h"
#include "compiler/cover_checks.h"
#include "compiler/cover_search.h"

namespace collage {

struct ChosenCover {
  size_t index = 0;  // into the covers
  LoweredPlan lowered;
  std::vector<TimedCover> timed;  // one a cover
};

struct ChooseOptions {
  int threads = 1;
  std::string source_key;     // identifies the model's structure
  std::string model_key;      // the same after the targets' rewrites
  std::string context;        // what makes timings comparable
  double constant_bytes = 0;  // of the model: what each program that is alive holds, about
  double max_error = 0;       // of any cover's outputs, where the user says
  bool frozen = false;
  bool untimed = false;  // where these covers were never timed, the first that is right is taken
};

// Of a cover that is not timed now.
CoverPrediction predict_cover(const NamedCover& cover,
                              const std::vector<CostedCandidate>& candidates, CoverChecks& checks,
                              CostDatabase& database, const ChooseOptions& options);

// The cover whose timing in the database is the best, of those that are not known to be wrong;
// where none was timed the first, which is predicted to be the fastest.
size_t fastest_known(const std::vector<NamedCover>& covers,
                     const std::vector<CostedCandidate>& candidates, CoverChecks& checks,
                     CostDatabase& database, const ChooseOptions& options);

CheckedCover checked_cover(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);

using Lower = std::function<Result<LoweredPlan>(const NamedCover&)>;

// kVerification: every cover is wrong, or beyond the largest error allowed.
Result<ChosenCover> choose_cover(const std::vector<NamedCover>& covers,
                                 const std::vector<CostedCandidate>& candidates,
                                 const Lower& lower_cover, CoverChecks& checks,
                                 CostDatabase& database, const ChooseOptions& options,
                                 Progress* progress);

}  // namespace collage
