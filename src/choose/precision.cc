#include "choose/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "choose/priced_search.h"
#include "choose/remeasure.h"

namespace collage {

namespace {

// Whole runs of covers on the way to one within the budget; each aims a little below it, and is
// the last when it uses most of it. After as many of them what is still unknown of amplifications
// is taken to be typical.
constexpr int kTrials = 7, kLessons = 8;
constexpr double kAim = 0.85, kWellUsed = 0.7;
constexpr int kScatterings = 8;

// Keeps those that are lowered and not there already.
void add_lowered(std::vector<NamedCover> found, const std::vector<CostedCandidate>& candidates,
                 std::vector<NamedCover>& covers) {
  for (NamedCover& cover : found) {
    if (!is_lowered(cover)) continue;
    std::string text = cover_text(cover, candidates);
    if (std::any_of(covers.begin(), covers.end(),
                    [&](const NamedCover& other) { return cover_text(other, candidates) == text; }))
      continue;
    cover.name = cover.single_backend ? cover.name + " lowered"
                                      : fmt::format("lowered cover {}", covers.size());
    covers.push_back(std::move(cover));
  }
}

// Of covers at scattered prices that are estimated to err by no more than that the fastest, where
// it is faster than `best` by something.
Result<std::optional<PricedCover>> scattered_cover(PricedSearch& search, const NamedCover& best,
                                                   double estimate) {
  constexpr double kWorth = 0.995;
  std::optional<PricedCover> fastest;
  double least = kWorth * best.predicted_seconds;
  for (int scatter = 1; scatter <= kScatterings && !interrupted(); ++scatter) {
    PricedCover found = TRY(search.within(estimate, scatter));
    if (found.cover.predicted_seconds >= least) continue;
    least = found.cover.predicted_seconds;
    fastest = std::move(found);
  }
  return fastest;
}

// Measures once more what the fastest cover costs, and that which seems to be within the budget as
// long as nothing is known of how errors grow; with what they change again.
Status remeasure_lowered(const Remeasure& remeasure, double limit, const FindCovers& find_cheapest,
                         std::vector<CostedCandidate>& candidates) {
  for (int round = 0; round < kMostRemeasurements; ++round) {
    const PricedCover fastest =
        TRY(PricedSearch(candidates, limit, find_cheapest).cheapest(Price()));
    if (!is_lowered(fastest.cover)) break;
    bool changed = TRY(remeasure(fastest.cover, candidates));
    const PricedCover within =
        TRY(PricedSearch(candidates, limit, find_cheapest).within(kAim * limit));
    changed |= TRY(remeasure(within.cover, candidates));
    if (!changed) break;
  }
  return {};
}

Result<double> run_and_compare(const NamedCover& cover, const Lower& lower_cover,
                               ReferenceCheck& reference, int threads) {
  const Tolerance any = {.of_scale = std::numeric_limits<double>::max()};
  LoweredPlan lowered = TRY(lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, threads));
  return TRY(reference.error(executor, any)).error;
}

}  // namespace

Result<std::vector<LoweringPrice>> find_prices(const std::vector<CostedCandidate>& candidates,
                                               double max_error, const FindCovers& find_cheapest,
                                               const CoverError& error_of) {
  const double limit = kOfMaxError * max_error;
  const ErrorAmplification amplifications(candidates, find_cheapest, error_of);
  std::optional<PricedSearch> search(std::in_place, candidates, limit, find_cheapest);
  std::vector<LoweringPrice> result;
  AmplificationTable known;
  // Of the covers that were run: the largest estimate within the budget, and the least beyond it.
  double within = 0, beyond = std::numeric_limits<double>::infinity();
  std::optional<NamedCover> best;  // within it
  double amplification_of_best = 0;
  PricedCover next = TRY(search->cheapest(Price()));
  for (int trial = 0, lessons = 0; trial < kTrials + lessons; ++trial) {
    if (interrupted() || !is_lowered(next.cover)) break;
    PricedCover tried = std::move(next);
    Result<double> error = error_of(tried.cover);
    const bool fits = error && *error <= limit;
    log::info("price {:.3g}: {:.3f} ms predicted, errors estimated at {:.2g}, outputs err by {}",
              tried.price.seconds, 1e3 * tried.cover.predicted_seconds,
              estimated_error(tried.cover),
              error ? fmt::format("{:.2g}", *error) : error.status().to_string());
    if (fits) result.push_back({tried.price.seconds, known, 0});
    if (fits && tried.price.seconds == 0) break;
    const bool learnt = lessons < kLessons && TRY(amplifications.learn(tried.cover, known));
    if (learnt) {
      // Prices and estimates mean something else now.
      ++lessons;
      search.emplace(amplified(candidates, known), limit, find_cheapest);
      for (CoverKernel& kernel : tried.cover.kernels)
        if (has_lowered_variants(candidates[kernel.candidate]))
          kernel.costs = search->candidates()[kernel.candidate].costs;
      within = 0, beyond = std::numeric_limits<double>::infinity();
      best.reset();
    }
    const double estimate = estimated_error(tried.cover);
    const double amplification = error ? *error / estimate : 4 * limit / estimate;
    if (!learnt && fits) {
      within = estimate;
      best = tried.cover;
      amplification_of_best = amplification;
      // What is left of the budget is not worth another trial.
      if (*error > kWellUsed * limit) break;
    } else if (!learnt) {
      beyond = std::min(beyond, estimate);
    }
    // A cover that nobody ran: at a little below the budget, or else with all of it.
    for (double aim : {kAim, 1.0}) {
      double target = aim * limit / amplification;
      if (target <= within || target >= beyond) target = std::sqrt(within * beyond);
      next = TRY(search->within(target));
      if (estimated_error(next.cover) > within) break;
    }
    if (estimated_error(next.cover) <= within) break;
  }
  if (!best || interrupted()) return result;
  const auto scattered = TRY(scattered_cover(*search, *best, kAim * limit / amplification_of_best));
  if (!scattered) return result;
  Result<double> error = error_of(scattered->cover);
  log::info("scattered around {:.3g}: {:.3f} ms predicted, outputs err by {}",
            scattered->price.seconds, 1e3 * scattered->cover.predicted_seconds,
            error ? fmt::format("{:.2g}", *error) : error.status().to_string());
  if (error && *error <= limit)
    result.push_back({scattered->price.seconds, known, scattered->price.scatter});
  return result;
}

Result<ChosenCover> choose_within_budget(ChosenCover full, CoverSearch& found,
                                         const FindCovers& find, const FindCovers& find_cheapest,
                                         const Remeasure& remeasure, const Lower& lower_cover,
                                         CoverChecks& checks, CostDatabase& database,
                                         const ChooseOptions& options, Progress* progress) {
  const double max_error = options.max_error, limit = kOfMaxError * max_error;
  std::vector<CostedCandidate> candidates = found.candidates;
  std::vector<NamedCover> fastest;
  std::string text, key;
  // What the prices of these candidates are known by.
  const auto enter = [&]() -> Status {
    fastest = TRY(PricedSearch(candidates, limit, find).covers(Price()));
    // Others than the best may hold functions that nobody measured, and frozen costs leave out.
    std::string fastest_text = cover_text(fastest.front(), candidates) + "\n";
    for (const NamedCover& one : fastest)
      if (one.single_backend) fastest_text += one.name + "\n";
    text = fmt::format("{}\n{}\n{}\nwithin {} on several inputs", options.model_key,
                       sha256_hex(fastest_text), checks.constants(), max_error);
    key = CostDatabase::key_of(text, options.context);
    return {};
  };
  TRY(enter());
  std::optional<PriceList> known = find_value(database, "prices", key, price_list_from_json);
  if (!known && options.frozen)
    return error(ErrorCode::kFrozenCosts, "this model was never lowered within {}", max_error);
  if (!known) {
    TRY(remeasure_lowered(remeasure, limit, find_cheapest, candidates));
    TRY(enter());
    known = find_value(database, "prices", key, price_list_from_json);
  }
  if (!known) {
    known = TRY(find_prices(candidates, max_error, find_cheapest, [&](const NamedCover& tried) {
      return run_and_compare(tried, lower_cover, checks.reference(), options.threads);
    }));
    if (!interrupted())
      database.put("prices", key, text, json_text(to_json(*known)), options.context);
  }
  const PriceList& prices = *known;

  std::vector<NamedCover>& covers = found.covers;
  const size_t in_float32 = covers.size();
  for (const LoweringPrice& price : prices) {
    const PricedSearch priced(amplified(candidates, price.amplifications), limit, find);
    std::vector<NamedCover> some = TRY(priced.covers({price.price, price.scatter}));
    const size_t most = std::max<size_t>(2, kTopCovers / prices.size());
    const bool last = &price == &prices.back();
    size_t others = 0;
    std::erase_if(some, [&](const NamedCover& one) {
      return one.single_backend || (one.mostly_one ? !last : ++others > most);
    });
    add_lowered(std::move(some), candidates, covers);
  }
  // Those of one backend at any error: beyond the budget they are refused when they are tried.
  std::erase_if(fastest,
                [](const NamedCover& one) { return !one.single_backend && !one.mostly_one; });
  add_lowered(std::move(fastest), candidates, covers);
  found.candidates = with_costs_of(covers, candidates);
  if (covers.size() == in_float32) return full;
  return require(TRY(
      choose_cover(covers, found.candidates, lower_cover, checks, database, options, progress)));
}

}  // namespace collage
