// From candidates to the cover that is used. Each stage is a function of the values before it:
//
//   Candidates      find_candidates   what each target could take of the model  (candidates.h)
//   ModelCosts      find_costs        its variants, with costs as far as known  (costing.h)
//   CoverSearch     find_covers       the cheapest covers, with all that they use measured
//                                     (cover_search.h)
//   CoverChoice     choose_cover      the fastest of them, right, by the clock  (choose_cover.h)
//
// No stage changes what an earlier one gave. Costs that decide are measured again at another moment
// (remeasure.h), and then what follows from costs is found anew: by decide(), nowhere else.
#pragma once

#include "compiler/context.h"

namespace collage {

struct Decision {
  VariantDemands demands;  // that the covers meet
  CoverSearch found;       // with costs as measured last
  CoverChoice chosen;
  bool light = false;     // boundaries were not searched, nothing was measured (light_cover.h)
  bool complete = false;  // all that could be in a better cover was measured

  const NamedCover& cover() const { return found.covers[*chosen.index]; }
};

// What the user demands, before any cover is tried.
VariantDemands demands_of(const ProgramOptions& options);

// The first three stages alone: costs, and the covers by them. None with one toolchain whose
// kernels nobody measured.
Result<std::optional<CoverSearch>> search(const Candidates& candidates, CompileContext& context);
// All stages. Where no cover is right, among covers without algorithms of larger rounding errors;
// with one toolchain, or for a first answer, without the kernels that are to blame. Keeps what was
// decided in the database: the first answer of later compilations.
Result<Decision> decide(const Candidates& candidates, CompileContext& context);

// The same decision among covers that may round to smaller float types within the error allowed
// (precision.h).
Result<Decision> lowered(Decision decision, const Candidates& candidates, CompileContext& context);

// Times the chosen cover's kernels amid one another, if nobody did (in_situ_ratio.h).
Status measure_in_situ(const Decision& decision, CompileContext& context);
// Of outputs that the checks of the chosen cover prove nothing of.
void warn_of_silent_outputs(const Decision& decision, CompileContext& context);

}  // namespace collage
