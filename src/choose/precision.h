// Covers whose kernels may round to a smaller float type, within the error that the user allows.
//
// The error of a lowered variant was measured with its cost: the root mean square of the error, as
// a part of that of its result. error_amplification.h estimates a cover's error, and the search
// finds the fastest cover within an estimate (SearchProblem::max_error).
//
// Such covers are run whole, on the model's own weights and several inputs, until the error of the
// outputs is within the budget.
#pragma once

#include <string>

#include "choose/choose_cover.h"
#include "choose/error_amplification.h"

namespace collage {

// Estimates within which the search finds covers that err by less than `max_error`; none where
// lowering gains nothing within it. Of the covers that are found only the first is looked at.
Result<BudgetList> find_budgets(const std::vector<CostedCandidate>& candidates, double max_error,
                                const FindCovers& find, const CoverError& error_of);

// Measures a cover's costs once more (remeasure.h), which changes the candidates'; whether it did.
using Remeasure =
    std::function<Result<bool>(const NamedCover&, std::vector<CostedCandidate>& candidates)>;

// Chooses once more, among the covers found, of which `full` was chosen in float32, and lowered
// ones within the budget (`context.options.max_error`), which are added to them. The candidates
// found have lowered variants (lowered_costs.h).
Result<CoverChoice> choose_within_budget(CoverChoice full, CoverSearch& found,
                                         const FindCovers& search, const Remeasure& remeasure,
                                         const ChooseContext& context);

}  // namespace collage
