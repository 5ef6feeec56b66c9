#include "precision/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "select/remeasure.h"

namespace collage {

namespace {

// Whole runs of covers on the way to one within the budget; each aims a little below it, and is
// the last when it uses most of it. After as many of them what is still unknown of amplifications
// is taken to be typical.
constexpr int kTrials = 7, kLessons = 8;
constexpr double kAim = 0.85, kWellUsed = 0.7;
// Searches on the way to a price that gives a wanted estimate.
constexpr int kPriceSteps = 9;

// One price gives the cover whose saving an error is best worth; a cheaper one may lower so much
// more that it is beyond the budget, and nothing in between is ever the best. Scattered prices,
// other ones in each of so many ways, give covers that use what is left.
constexpr int kScatterings = 8;
constexpr double kWidest = 2;  // a factor

struct Price {
  double price = 0;
  int scatter = 0;
};

// What a candidate pays for a squared error of one. Layers are often equal, and at one price all of
// them would be lowered or none: errors cost less the later they are made, as they have less way to
// grow.
double price_of(const CostedCandidate& candidate, size_t last, const Price& price) {
  const size_t end = candidate.partition.sub_graph.inside().last();
  const double position = static_cast<double>(end) / static_cast<double>(std::max<size_t>(last, 1));
  double factor = 2 - position;
  if (price.scatter != 0) {
    const size_t hash = hash_combine(static_cast<size_t>(price.scatter), end);
    const double chance = static_cast<double>(hash % 1024) / 1023;  // 0 to 1
    factor *= std::pow(kWidest, 2 * chance - 1);
  }
  return price.price * factor;
}

class PricedSearch {
 public:
  // Kernels that err by more than `limit` are left out, but at price 0.
  PricedSearch(std::vector<CostedCandidate> candidates, double limit, const FindCovers& find)
      : candidates_(std::move(candidates)), limit_(limit), find_(find) {
    for (const CostedCandidate& candidate : candidates_)
      last_ = std::max(last_, candidate.partition.sub_graph.inside().last());
  }

  const std::vector<CostedCandidate>& candidates() const { return candidates_; }

  // Covers by name and what they are predicted to take, the price taken off again.
  Result<std::vector<NamedCover>> covers(const Price& price) const {
    CoverSearch found = TRY(find_(priced(price)));
    for (NamedCover& cover : found.covers)
      for (CoverKernel& kernel : cover.kernels) {
        const CostedCandidate& candidate = candidates_[kernel.candidate];
        if (!has_lowered_variants(candidate)) continue;
        kernel.costs = candidate.costs;
        const double error = kernel.row().error;
        const double paid = price_of(candidate, last_, price) * error * error;
        for (double* seconds : {&kernel.seconds, &cover.predicted_seconds, &cover.plain_seconds})
          *seconds -= paid;
      }
    return std::move(found.covers);
  }

  // Measures the costs of the cheapest of these covers once more, which cost the least without a
  // price, and at the one that seems to be within the budget as long as nothing is known of how
  // errors grow; with what they change again.
  Status remeasure(const Remeasure& look, std::vector<NamedCover> fastest) {
    for (int round = 0; round < kMostRemeasurements && is_lowered(fastest[0]); ++round) {
      bool changed = TRY(look(fastest[0], candidates_));
      const double estimate = estimated_error(fastest[0]);
      const double price =
          TRY(price_for(kAim * limit_, fastest[0].predicted_seconds / (estimate * estimate)));
      changed |= TRY(look(TRY(covers({price})).at(0), candidates_));
      if (!changed) break;
      fastest = TRY(covers({}));
    }
    return {};
  }

  // The least price (to within a factor) whose cheapest cover is estimated to err less than that.
  Result<double> price_for(double estimate, double scale, int scatter = 0) const {
    double low = scale * 1e-4, high = scale * 1e4;
    for (int step = 0; step < kPriceSteps && high > 1.05 * low; ++step) {
      double middle = std::sqrt(low * high);
      std::vector<NamedCover> found = TRY(covers({middle, scatter}));
      bool within = estimated_error(found.at(0)) <= estimate;
      (within ? high : low) = middle;
    }
    return high;
  }

 private:
  // The candidates with the price of their errors added to what they cost.
  std::vector<CostedCandidate> priced(const Price& price) const {
    std::vector<CostedCandidate> result = candidates_;
    for (CostedCandidate& candidate : result) {
      if (price.price == 0 || !has_lowered_variants(candidate)) continue;
      auto costs = std::make_shared<TargetCosts>(*candidate.costs);
      const double own = price_of(candidate, last_, price);
      for (MeasuredVariant& row : costs->variants) {
        auto* m = std::get_if<Measured>(&row.cost);
        if (m == nullptr) continue;
        const double paid = own * row.error * row.error;
        *m = {m->median + paid, m->p10 + paid, m->p90 + paid, m->samples};
        if (row.error > limit_) row.cost = Invalid{"its error alone is beyond the budget"};
      }
      candidate.costs = std::move(costs);
    }
    return result;
  }

  std::vector<CostedCandidate> candidates_;
  const double limit_;
  const FindCovers& find_;
  size_t last_ = 0;  // node of any candidate
};

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

// Scattered prices around `price` whose cover is estimated to err by no more than that and
// predicted to be the fastest, where it is faster than `best`, by something.
Result<std::optional<Price>> scattered_price(const PricedSearch& search, const NamedCover& best,
                                             double price, double estimate) {
  constexpr double kWorth = 0.995;
  std::optional<Price> found;
  double least = kWorth * best.predicted_seconds;
  for (int scatter = 1; scatter <= kScatterings && !interrupted(); ++scatter) {
    const Price tried{TRY(search.price_for(estimate, price, scatter)), scatter};
    const double seconds = TRY(search.covers(tried)).at(0).predicted_seconds;
    if (seconds >= least) continue;
    least = seconds;
    found = tried;
  }
  return found;
}

Result<double> run_and_compare(const NamedCover& cover, const Lower& lower_cover,
                               ReferenceCheck& reference, int threads) {
  constexpr Tolerance kAny = {.of_largest = std::numeric_limits<double>::max()};
  LoweredPlan lowered = TRY(lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, threads));
  return reference.error(executor, kAny);
}

}  // namespace

Result<std::vector<LoweringPrice>> find_prices(const std::vector<CostedCandidate>& candidates,
                                               double max_error, const FindCovers& find,
                                               const CoverError& error_of) {
  const double limit = kOfMaxError * max_error;
  const ErrorAmplification amplifications(candidates, find, error_of);
  std::optional<PricedSearch> search(std::in_place, candidates, limit, find);
  std::vector<LoweringPrice> result;
  AmplificationTable known;
  // The dearest price that is known to be too low, and the cheapest that is high enough.
  double low = 0, high = std::numeric_limits<double>::infinity(), price = 0;
  std::optional<NamedCover> best;  // at that price
  double amplification_of_best = 0;
  for (int trial = 0, lessons = 0; trial < kTrials + lessons; ++trial) {
    if (interrupted()) break;
    NamedCover cheapest = TRY(search->covers({price})).at(0);
    if (!is_lowered(cheapest)) break;
    Result<double> error = error_of(cheapest);
    const bool within = error && *error <= limit;
    log::info("price {:.3g}: {:.3f} ms predicted, errors estimated at {:.2g}, outputs err by {}",
              price, 1e3 * cheapest.predicted_seconds, estimated_error(cheapest),
              error ? fmt::format("{:.2g}", *error) : error.status().to_string());
    if (within) result.push_back({price, known, 0});
    if (within && price == 0) break;
    if (lessons < kLessons && TRY(amplifications.learn(cheapest, known))) {
      // Prices mean something else now.
      ++lessons;
      search.emplace(amplified(candidates, known), limit, find);
      for (CoverKernel& kernel : cheapest.kernels)
        if (has_lowered_variants(candidates[kernel.candidate]))
          kernel.costs = search->candidates()[kernel.candidate].costs;
      low = 0, high = std::numeric_limits<double>::infinity();
      best.reset();
    } else if (within) {
      high = price;
      best = cheapest;
      amplification_of_best = *error / estimated_error(cheapest);
      // What is left of the budget is not worth another trial.
      if (*error > kWellUsed * limit) break;
    } else {
      low = std::max(low, price);
    }
    const double estimate = estimated_error(cheapest);
    const double amplification = error ? *error / estimate : 4 * limit / estimate;
    double next = TRY(search->price_for(kAim * limit / amplification,
                                        cheapest.predicted_seconds / (estimate * estimate)));
    if (low > 0 && high < std::numeric_limits<double>::infinity()) {
      if (high < 1.05 * low) break;
      if (next <= low || next >= high) next = std::sqrt(low * high);
    } else if (next <= low) {
      next = 2 * low;
    } else if (next >= high) {
      next = high / 2;
    }
    price = next;
  }
  if (best && low > 0 && !interrupted())
    if (auto scattered =
            TRY(scattered_price(*search, *best, high, kAim * limit / amplification_of_best))) {
      const NamedCover cover = TRY(search->covers(*scattered)).at(0);
      Result<double> error = error_of(cover);
      log::info("scattered around {:.3g}: {:.3f} ms predicted, outputs err by {}", scattered->price,
                1e3 * cover.predicted_seconds,
                error ? fmt::format("{:.2g}", *error) : error.status().to_string());
      if (error && *error <= limit) result.push_back({scattered->price, known, scattered->scatter});
    }
  return result;
}

Result<ChosenCover> choose_within_budget(ChosenCover full, CoverSearch& found,
                                         const FindCovers& find, const Remeasure& remeasure,
                                         const Lower& lower_cover, CoverChecks& checks,
                                         CostDatabase& database, const ChooseOptions& options,
                                         Progress* progress) {
  const double max_error = options.max_error, limit = kOfMaxError * max_error;
  PricedSearch search(found.candidates, limit, find);
  std::vector<NamedCover> fastest;
  std::string text, key;
  // What the prices of these candidates are known by.
  const auto enter = [&]() -> Status {
    fastest = TRY(search.covers({}));
    std::string fastest_text;
    for (const NamedCover& one : fastest)
      fastest_text += cover_text(one, search.candidates()) + "\n";
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
    TRY(search.remeasure(remeasure, fastest));
    TRY(enter());
    known = find_value(database, "prices", key, price_list_from_json);
  }
  if (!known) {
    known = TRY(find_prices(search.candidates(), max_error, find, [&](const NamedCover& tried) {
      return run_and_compare(tried, lower_cover, checks.reference(), options.threads);
    }));
    if (!interrupted())
      database.put("prices", key, text, json_text(to_json(*known)), options.context);
  }
  const PriceList& prices = *known;

  std::vector<NamedCover>& covers = found.covers;
  const size_t in_float32 = covers.size();
  for (const LoweringPrice& price : prices) {
    const PricedSearch priced(amplified(search.candidates(), price.amplifications), limit, find);
    std::vector<NamedCover> some = TRY(priced.covers({price.price, price.scatter}));
    const size_t most = std::max<size_t>(2, kTopCovers / prices.size());
    const bool last = &price == &prices.back();
    size_t others = 0;
    std::erase_if(some, [&](const NamedCover& one) {
      return one.single_backend || (one.mostly_one ? !last : ++others > most);
    });
    add_lowered(std::move(some), search.candidates(), covers);
  }
  // Those of one backend at any error: beyond the budget they are refused when they are tried.
  std::erase_if(fastest,
                [](const NamedCover& one) { return !one.single_backend && !one.mostly_one; });
  add_lowered(std::move(fastest), search.candidates(), covers);
  found.candidates = with_costs_of(covers, search.candidates());
  if (covers.size() == in_float32) return full;
  return require(TRY(
      choose_cover(covers, found.candidates, lower_cover, checks, database, options, progress)));
}

}  // namespace collage
