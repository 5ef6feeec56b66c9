// Covers whose kernels may round to a smaller float type, within the error that the user allows.
//
// The error of a lowered variant was measured with its cost: the root mean square of the error, as
// a part of that of its result. Kernels' errors are taken as independent, so the estimate of a
// cover is the root of the sum of their squares. A price per squared error is added to the seconds
// of each variant, and the search finds the cheapest cover by that price: at price 0 the fastest of
// all, at a high one that of float32 alone.
//
// How errors reach the outputs depends on the model: covers are run whole, on the model's own
// weights; some in which one function alone is lowered, which says how its errors grow, the others
// at prices that rise until the error of the outputs is within the budget.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "compiler/choose_cover.h"

namespace collage {

// The candidates with the lowered variants of their functions behind the others.
Result<std::vector<CostedCandidate>> with_lowered_variants(
    const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
    MeasuredCosts& costs, Progress* progress);

// Covers of candidates like these, cheapest first, then the single-backend covers.
using FindCovers = std::function<Result<CoverSearch>(std::vector<CostedCandidate>&)>;
// What a cover's outputs err by; a failure is one beyond any budget.
using CoverError = std::function<Result<double>(const NamedCover&)>;

struct LoweringPrice {
  double price;  // of a squared error, in seconds
  // By what the errors of a function's lowered kernels grow until the outputs, where that is known.
  std::map<std::string, double> growths;
};

// Prices at which the search finds covers that err by less than `max_error`; none when lowering
// gains nothing within it. The candidates' errors become those of the outputs, and costs of the
// host's are filled in, where a cover uses them.
Result<std::vector<LoweringPrice>> find_prices(std::vector<CostedCandidate>& candidates,
                                               double max_error, const FindCovers& find,
                                               const CoverError& error);

// The constants of a function by value: whether a cover is within a budget depends on them.
std::string constants_digest(const Function& function);

// Chooses once more, among `covers`, of which `full` was chosen in float32, and lowered ones within
// the budget (`options.max_error`), which are added to them.
Result<ChosenCover> choose_within_budget(ChosenCover full, std::vector<NamedCover>& covers,
                                         std::vector<CostedCandidate>& candidates,
                                         const FindCovers& find, const Lower& lower_cover,
                                         LazyJudge& judge, CostDatabase& database,
                                         ChooseOptions options, Progress* progress);

}  // namespace collage
