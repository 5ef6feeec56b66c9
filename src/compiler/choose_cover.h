// Choosing by the clock: lowers the covers, checks each against the reference on real data, times
// them end to end (cover_contest.h), and keeps the fastest. Figures are cached cover by cover, so a
// warm compile lowers only the winner, and what they teach corrects predictions of other models.
#pragma once

#include "compiler/compile.h"
#include "compiler/cover_search.h"
#include "compiler/judge.h"

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
  double max_error = 0;       // of a cover's outputs, where the user allows one (model_tolerance)
  std::string constants;      // identifies their values: errors of lowered covers depend on them
  bool frozen = false;
  // Where these covers were never timed, the first is taken as it is: its kernels were verified.
  bool untimed = false;
};

// Of a cover that is not timed now.
CoverPrediction predict_cover(const NamedCover& cover,
                              const std::vector<CostedCandidate>& candidates,
                              CostDatabase& database, const ChooseOptions& options);

// The cover whose timing in the database is the best; where none was timed the first, which is
// predicted to be the fastest.
size_t fastest_known(const std::vector<NamedCover>& covers,
                     const std::vector<CostedCandidate>& candidates, CostDatabase& database,
                     const ChooseOptions& options);

using Lower = std::function<Result<LoweredPlan>(const NamedCover&)>;

Result<ChosenCover> choose_cover(const std::vector<NamedCover>& covers,
                                 const std::vector<CostedCandidate>& candidates,
                                 const Lower& lower_cover, LazyJudge& judges,
                                 CostDatabase& database, const ChooseOptions& options,
                                 Progress* progress);

}  // namespace collage
