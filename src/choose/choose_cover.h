// Choosing by the clock: lowers the covers, checks each against the reference (cover_checks.h),
// times them end to end (race.h), and keeps the fastest. Figures are cached cover by
// cover, so a warm compile lowers only the winner, and what they teach corrects predictions of
// other models. A cover that was timed with other weights is checked with this model's before it is
// chosen; where it is wrong the next one is taken. Where roundings alone move the model's outputs
// by more than is allowed, the most accurate is taken, with a warning.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "choose/cover_checks.h"
#include "choose/cover_search.h"
#include "choose/memory_limits.h"
#include "measure/noise_gate.h"
#include "measure/pace.h"

namespace collage {

// What a cover takes end to end.
struct CoverTiming {
  double predicted_seconds = 0;  // before it first ran
  std::optional<Measured> measured = {};
  std::string failure = {};  // why it could not be timed
  // Of the prediction: what other models taught, and costs that were measured again since.
  double correction_seconds = 0;
  size_t bytes = 0;  // that its program keeps (memory_limits.h); 0: not known
};

// What a cover is predicted to take, in seconds, from costs measured in isolation and what covers
// of other models teach (prediction.h); 0 where its costs are not known.
struct CoverPrediction {
  // As it was before a program of the cover first ran: it is kept with the cover's timing, so that
  // nothing that was seen in the model is called a prediction.
  double predicted = 0;
  double now = 0;  // by costs as they are known now: some are measured again after covers ran
};

// What the clock and the checks say of some covers: the one to use, or why there is none.
struct CoverChoice {
  std::optional<size_t> index = {};       // into the covers
  LoweredPlan lowered = {};               // of that one
  std::vector<CoverTiming> timings = {};  // one a cover
  std::string failure = {};  // every cover is wrong, or beyond the largest error allowed
  // kUnavailable: one is right, maybe, but its memory cannot be had.
  ErrorCode code = ErrorCode::kVerification;
};
// An error where nothing was chosen.
Result<CoverChoice> require(CoverChoice choice);

// How covers that were never timed are compared.
enum class TimingEffort {
  kFull,
  kQuick,  // a difference of a tenth is worth finding, no smaller one
  kNone,   // the first that is right is taken
};

struct ChooseOptions {
  int threads = 1;
  std::string source_key;     // identifies the model's structure
  std::string model_key;      // the same with numbers for names of devices
  std::string context;        // what makes timings comparable
  double constant_bytes = 0;  // of the model: what each program that is alive holds, about
  double max_error = 0;       // of any cover's outputs, where the user says
  bool frozen = false;
  std::string lacking = {};  // instruction sets for which programs cannot run here
  TimingEffort timing = TimingEffort::kFull;
  Effort effort = Effort::kDefault;
  std::vector<MemoryLimit> memory_limits;
  double memory_weight = 0;   // seconds that a megabyte which a program keeps counts as
  NoiseGate* gate = nullptr;  // not null: programs are timed in quiet moments
  Pace* pace = nullptr;       // not null: timing rests beside other work of this process
};

using Lower = std::function<Result<LoweredPlan>(const NamedCover&)>;

// What choosing needs beside covers; all of it must outlive the choice.
struct ChooseContext {
  Lower lower_cover;
  CoverChecks& checks;
  CostDatabase& database;
  const ChooseOptions& options;
  Progress* progress = nullptr;  // null: nobody watches
};

// Of a cover that is not timed now.
CoverPrediction predict_cover(const NamedCover& cover, const ChooseContext& context);

// The cover whose timing in the database is the best, of those that are not known to be wrong;
// where none was timed the first, which is predicted to be the fastest.
size_t fastest_known(const std::vector<NamedCover>& covers, const ChooseContext& context);

Result<CoverChoice> choose_cover(const std::vector<NamedCover>& covers,
                                 const ChooseContext& context);

}  // namespace collage
