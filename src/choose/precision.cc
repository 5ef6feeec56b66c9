#include "choose/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "choose/remeasure.h"

namespace collage {

namespace {

// Whole runs of covers on the way to one within the budget; each aims a little below it, and is
// the last when it uses most of it. After as many of them what is still unknown of amplifications
// is taken to be typical.
constexpr int kTrials = 7, kLessons = 8;
constexpr double kAim = 0.85, kWellUsed = 0.7;

// Keeps those that are lowered and not there already.
void add_lowered(std::vector<NamedCover> found, std::vector<NamedCover>& covers) {
  for (NamedCover& cover : found) {
    const auto is_same = [&](const NamedCover& other) { return other.text == cover.text; };
    if (!cover.lowered || std::any_of(covers.begin(), covers.end(), is_same)) continue;
    cover.origin += ", lowered";
    cover.name = cover.single_backend ? cover.name + " lowered"
                                      : fmt::format("lowered cover {}", covers.size());
    covers.push_back(std::move(cover));
  }
}

Result<NamedCover> cheapest_within(const FindCovers& find,
                                   const std::vector<CostedCandidate>& candidates,
                                   double max_error) {
  return std::move(TRY(find(candidates, max_error, WantedCovers::kCheapest)).covers.at(0));
}

// Measures once more what the fastest cover costs, and that which seems to be within the budget as
// long as nothing is known of how errors grow; with what they change again.
Status remeasure_lowered(const Remeasure& remeasure, double limit, const FindCovers& find,
                         std::vector<CostedCandidate>& candidates) {
  for (int round = 0; round < kMostRemeasurements; ++round) {
    const NamedCover fastest = TRY(cheapest_within(find, candidates, kInfinity));
    if (!fastest.lowered) break;
    bool changed = TRY(remeasure(fastest, candidates));
    changed |= TRY(remeasure(TRY(cheapest_within(find, candidates, kAim * limit)), candidates));
    if (!changed) break;
  }
  return {};
}

Result<double> run_and_compare(const NamedCover& cover, const ChooseContext& context) {
  const Tolerance any = {.of_scale = std::numeric_limits<double>::max()};
  LoweredPlan lowered = TRY(context.lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, context.options.threads));
  return TRY(context.checks.reference().error(executor, any)).error;
}

}  // namespace

Result<BudgetList> find_budgets(const std::vector<CostedCandidate>& candidates, double max_error,
                                const FindCovers& find, const CoverError& error_of) {
  const double limit = kOfMaxError * max_error;
  const ErrorAmplification amplifications(candidates, find, error_of);
  std::vector<CostedCandidate> grown = candidates;  // with errors as far as they are known to grow
  BudgetList result;
  AmplificationTable known;
  // Of the covers that were run: the largest estimate within the budget, and the least beyond it.
  double within = 0, beyond = kInfinity;
  double budget = kInfinity;
  NamedCover next = TRY(cheapest_within(find, grown, budget));
  for (int trial = 0, lessons = 0; trial < kTrials + lessons; ++trial) {
    if (interrupted() || !next.lowered) break;
    NamedCover tried = std::move(next);
    const Result<double> error = error_of(tried);
    const bool fits = error && *error <= limit;
    log::info("within {:.3g}: {:.3f} ms predicted, errors estimated at {:.2g}, outputs err by {}",
              budget, 1e3 * tried.seconds, estimated_error(tried, grown),
              error ? fmt::format("{:.2g}", *error) : error.status().to_string());
    if (fits) result.push_back({std::min(budget, kMostError), known});
    if (fits && budget == kInfinity) break;
    const bool learnt = lessons < kLessons && TRY(amplifications.learn(tried, known));
    if (learnt) {
      // Budgets and estimates mean something else now.
      ++lessons;
      grown = amplified(candidates, known);
      within = 0, beyond = kInfinity;
    }
    const double estimate = estimated_error(tried, grown);
    const double amplification = error ? *error / estimate : 4 * limit / estimate;
    if (!learnt && fits) {
      within = estimate;
      // What is left of the budget is not worth another trial.
      if (*error > kWellUsed * limit) break;
    } else if (!learnt) {
      beyond = std::min(beyond, estimate);
    }
    // A cover that nobody ran: at a little below the budget, or else with all of it.
    for (const double aim : {kAim, 1.0}) {
      budget = aim * limit / amplification;
      if (budget <= within || budget >= beyond) budget = std::sqrt(within * beyond);
      next = TRY(cheapest_within(find, grown, budget));
      if (estimated_error(next, grown) > within) break;
    }
    if (estimated_error(next, grown) <= within) break;
  }
  return result;
}

Result<CoverChoice> choose_within_budget(CoverChoice full, CoverSearch& found,
                                         const FindCovers& search, const Remeasure& remeasure,
                                         const ChooseContext& context) {
  const double max_error = context.options.max_error;
  std::vector<CostedCandidate>& candidates = found.candidates;
  const FindCovers find = [&](const std::vector<CostedCandidate>& some, double within,
                              WantedCovers wanted) -> Result<CoverSearch> {
    CoverSearch result = TRY(search(some, within, wanted));
    adopt_costs(result.candidates, candidates);
    return result;
  };
  std::vector<NamedCover> fastest;
  std::string text, key;
  // What the budgets of these candidates are known by.
  const auto enter = [&]() -> Status {
    fastest = TRY(find(candidates, kInfinity, WantedCovers::kAll)).covers;
    // Others than the best may hold functions that nobody measured, and frozen costs leave out.
    std::string fastest_text = fastest.front().text + "\n";
    for (const NamedCover& one : fastest)
      if (one.single_backend) fastest_text += one.name + "\n";
    text = fmt::format("{}\n{}\n{}\nwithin {} on several inputs", context.options.model_key,
                       sha256_hex(fastest_text), context.checks.constants(), max_error);
    key = CostDatabase::key_of(text, context.options.context);
    return {};
  };
  const auto find_known = [&] {
    return find_value(context.database, "budgets", key, budget_list_from_json);
  };
  TRY(enter());
  std::optional<BudgetList> budgets = find_known();
  if (!budgets && context.options.frozen)
    return error(ErrorCode::kFrozenCosts, "this model was never lowered within {}", max_error);
  if (!budgets) {
    TRY(remeasure_lowered(remeasure, kOfMaxError * max_error, find, candidates));
    TRY(enter());
    budgets = find_known();
  }
  if (!budgets) {
    budgets = TRY(find_budgets(candidates, max_error, find, [&](const NamedCover& tried) {
      return run_and_compare(tried, context);
    }));
    if (!interrupted())
      context.database.put("budgets", key, text, json_text(to_json(*budgets)),
                           context.options.context);
  }

  std::vector<NamedCover>& covers = found.covers;
  const size_t in_float32 = covers.size();
  for (const ErrorBudget& budget : *budgets) {
    const double estimate = budget.error < kMostError ? budget.error : kInfinity;
    std::vector<NamedCover> some =
        TRY(find(amplified(candidates, budget.amplifications), estimate, WantedCovers::kAll))
            .covers;
    const size_t most = std::max<size_t>(2, kTopCovers / budgets->size());
    const bool last = &budget == &budgets->back();
    size_t others = 0;
    std::erase_if(some, [&](const NamedCover& one) {
      return one.single_backend || (one.mostly_one ? !last : ++others > most);
    });
    add_lowered(std::move(some), covers);
  }
  // Those of one backend at any error: beyond the budget they are refused when they are tried.
  std::erase_if(fastest,
                [](const NamedCover& one) { return !one.single_backend && !one.mostly_one; });
  add_lowered(std::move(fastest), covers);
  if (covers.size() == in_float32) return full;
  return require(TRY(choose_cover(covers, context)));
}

}  // namespace collage
