// Covers whose kernels may round to a smaller float type, within the error that the user allows.
//
// The error of a lowered variant was measured with its cost: the root mean square of the error, as
// a part of that of its result; error_amplification.h estimates a cover's. A price per squared
// error is added to the seconds of each variant, and the search finds the cheapest cover by that
// price: at price 0 the fastest of all, at a high one that of float32 alone.
//
// Covers at some prices are run whole, on the model's own weights and several inputs, until the
// error of the outputs is within the budget.
#pragma once

#include <string>

#include "precision/error_amplification.h"
#include "select/choose_cover.h"

namespace collage {

// Prices at which the search finds covers that err by less than `max_error`; none when lowering
// gains nothing within it.
Result<std::vector<LoweringPrice>> find_prices(const std::vector<CostedCandidate>& candidates,
                                               double max_error, const FindCovers& find,
                                               const CoverError& error);

// Measures a cover's costs once more (remeasure.h), which changes the candidates'; whether it did.
using Remeasure =
    std::function<Result<bool>(const NamedCover&, std::vector<CostedCandidate>& candidates)>;

// Chooses once more, among the covers found, of which `full` was chosen in float32, and lowered
// ones within the budget (`options.max_error`), which are added to them. The candidates found have
// lowered variants (lowered_costs.h).
Result<ChosenCover> choose_within_budget(ChosenCover full, CoverSearch& found,
                                         const FindCovers& find, const Remeasure& remeasure,
                                         const Lower& lower_cover, CoverChecks& checks,
                                         CostDatabase& database, const ChooseOptions& options,
                                         Progress* progress);

}  // namespace collage
