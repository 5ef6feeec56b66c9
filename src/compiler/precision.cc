#include "compiler/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "ir/visitor.h"

namespace collage {

namespace {

// Inputs other than those that were tried may err more.
constexpr double kMargin = 0.9;
// Whole runs of covers on the way to one within the budget; each aims a little below it, and is
// the last when it uses most of it.
constexpr int kTrials = 7;
constexpr double kAim = 0.85, kWellUsed = 0.7;
// Searches on the way to a price that gives a wanted estimate.
constexpr int kPriceSteps = 9;

// What a lowered kernel of several products errs by at least: on the random data that it was
// measured with errors average out as they do not with a model's weights.
double least_error(const Function& function) {
  constexpr double kRoundoff = 0x1p-9;
  double products = 0;
  for (const Expr& expr : post_order(function->body))
    if (const auto* call = as<CallNode>(expr); call != nullptr && call->op != nullptr)
      products += call->op->kind == FusionKind::kAnchor;
  return products > 1 ? kRoundoff * std::sqrt(products) : 0;
}

const MeasuredVariant& row_of(const CoverKernel& kernel,
                              const std::vector<CostedCandidate>& candidates) {
  return candidates[kernel.candidate].costs->variants[kernel.variant];
}

double squared_error(const NamedCover& cover, const std::vector<CostedCandidate>& candidates) {
  double sum = 0;
  for (const CoverKernel& kernel : cover.kernels) {
    double error = row_of(kernel, candidates).error;
    sum += error * error;
  }
  return sum;
}

bool is_unmeasured(const CostedCandidate& candidate) {
  return candidate.costs == nullptr ||
         std::any_of(
             candidate.costs->variants.begin(), candidate.costs->variants.end(),
             [](const MeasuredVariant& row) { return std::holds_alternative<Unknown>(row.cost); });
}

// The candidates with the price of their errors added to what they cost.
std::vector<CostedCandidate> priced(const std::vector<CostedCandidate>& candidates, double price) {
  std::vector<CostedCandidate> result = candidates;
  if (price == 0) return result;
  std::map<const TargetCosts*, std::shared_ptr<const TargetCosts>> known;
  for (CostedCandidate& candidate : result) {
    if (candidate.costs == nullptr) continue;
    std::shared_ptr<const TargetCosts>& costs = known[candidate.costs.get()];
    if (costs == nullptr) {
      auto dearer = std::make_shared<TargetCosts>(*candidate.costs);
      for (MeasuredVariant& row : dearer->variants)
        if (auto* m = std::get_if<Measured>(&row.cost))
          for (double* seconds : {&m->median, &m->p10, &m->p90})
            *seconds += price * row.error * row.error;
      costs = std::move(dearer);
    }
    candidate.costs = costs;
  }
  return result;
}

class PricedSearch {
 public:
  PricedSearch(std::vector<CostedCandidate>& candidates, const FindCovers& find)
      : candidates_(candidates), find_(find) {}

  // Covers by name and what they are predicted to take, the price taken off again.
  Result<std::vector<NamedCover>> covers(double price) const {
    std::vector<CostedCandidate> dearer = priced(candidates_, price);
    CoverSearch found = TRY(find_(dearer));
    // What nobody had measured, the host's kernels, was measured on the way; it has no errors.
    for (size_t c = 0; c < dearer.size(); ++c)
      if (is_unmeasured(candidates_[c])) candidates_[c].costs = dearer[c].costs;
    for (NamedCover& cover : found.covers)
      for (CoverKernel& kernel : cover.kernels) {
        const double error = row_of(kernel, candidates_).error;
        for (double* seconds : {&kernel.seconds, &cover.predicted_seconds, &cover.plain_seconds})
          *seconds -= price * error * error;
      }
    return std::move(found.covers);
  }

  // The least price (to within a factor) whose cheapest cover is estimated to err less than that.
  Result<double> price_for(double estimate, double scale) const {
    double low = scale * 1e-4, high = scale * 1e4;
    for (int step = 0; step < kPriceSteps && high > 1.05 * low; ++step) {
      double middle = std::sqrt(low * high);
      std::vector<NamedCover> found = TRY(covers(middle));
      bool within = std::sqrt(squared_error(found.at(0), candidates_)) <= estimate;
      (within ? high : low) = middle;
    }
    return high;
  }

 private:
  std::vector<CostedCandidate>& candidates_;
  const FindCovers& find_;
};

// Keeps those that are lowered and not there already.
void add_lowered(std::vector<NamedCover> found, const std::vector<CostedCandidate>& candidates,
                 std::vector<NamedCover>& covers) {
  for (NamedCover& cover : found) {
    if (!is_lowered(cover, candidates)) continue;
    std::string text = cover_text(cover, candidates);
    if (std::any_of(covers.begin(), covers.end(),
                    [&](const NamedCover& other) { return cover_text(other, candidates) == text; }))
      continue;
    cover.name = cover.single_backend ? cover.name + " lowered"
                                      : fmt::format("lowered cover {}", covers.size());
    covers.push_back(std::move(cover));
  }
}

Result<double> run_and_judge(const NamedCover& cover, const Lower& lower_cover, LazyJudge& judge,
                             int threads) {
  constexpr Tolerance kAny = {.of_largest = std::numeric_limits<double>::max()};
  LoweredPlan lowered = TRY(lower_cover(cover));
  Executor executor = TRY(Executor::create(lowered.plan, threads));
  return TRY(judge.get())->error(executor, kAny);
}

}  // namespace

Result<std::vector<CostedCandidate>> with_lowered_variants(
    const DataflowGraph& graph, const std::vector<CostedCandidate>& candidates,
    MeasuredCosts& costs, Progress* progress) {
  std::vector<CostedCandidate> result = candidates;
  std::vector<size_t> lowering;
  std::vector<CandidatePartition> partitions;
  for (size_t c = 0; c < candidates.size(); ++c)
    if (find_backend(candidates[c].partition.spec->target.kind)->lowers()) {
      lowering.push_back(c);
      partitions.push_back(candidates[c].partition);
    }
  std::vector<CostedCandidate> lowered = TRY(cost_candidates(
      graph, std::move(partitions), costs, progress, nullptr, MeasuredCosts::Precision::kLowered));
  // Candidates of equal structure go on sharing their costs.
  std::map<const TargetCosts*, std::shared_ptr<const TargetCosts>> known;
  for (size_t i = 0; i < lowering.size(); ++i) {
    CostedCandidate& candidate = result[lowering[i]];
    if (candidate.costs == nullptr || lowered[i].costs == nullptr ||
        lowered[i].costs->variants.empty())
      continue;
    std::shared_ptr<const TargetCosts>& all = known[candidate.costs.get()];
    if (all == nullptr) {
      auto both = std::make_shared<TargetCosts>(*candidate.costs);
      both->refusal.clear();
      for (const MeasuredVariant& row : lowered[i].costs->variants) {
        both->variants.push_back(row);
        both->variants.back().error = std::max(row.error, least_error(candidate.function));
      }
      all = std::move(both);
    }
    candidate.costs = all;
  }
  return result;
}

Result<std::vector<double>> find_prices(std::vector<CostedCandidate>& candidates, double max_error,
                                        const FindCovers& find, const CoverError& error_of) {
  const PricedSearch search(candidates, find);
  const double limit = kMargin * max_error;
  std::vector<double> prices;
  double price = 0, scale = 0;
  for (int trial = 0; trial < kTrials && !interrupted(); ++trial) {
    std::vector<NamedCover> found = TRY(search.covers(price));
    const NamedCover& cheapest = found.at(0);
    if (!is_lowered(cheapest, candidates)) break;
    const double estimate = std::sqrt(squared_error(cheapest, candidates));
    Result<double> error = error_of(cheapest);
    log::info("price {:.3g}: {:.3f} ms predicted, errors estimated at {:.2g}, outputs err by {}",
              price, 1e3 * cheapest.predicted_seconds, estimate,
              error ? fmt::format("{:.2g}", *error) : error.status().to_string());
    const bool within = error && *error <= limit;
    if (within) prices.push_back(price);
    // What is left of the budget is not worth another trial, or nothing faster exists.
    if (within && (price == 0 || *error > kWellUsed * limit)) break;
    if (scale == 0) scale = cheapest.predicted_seconds / (estimate * estimate);
    // Errors grow by that factor on their way to the outputs.
    const double growth = error ? *error / estimate : 4 * limit / estimate;
    const double next = TRY(search.price_for(kAim * limit / growth, scale));
    if (next == price) break;
    price = next;
  }
  std::sort(prices.begin(), prices.end());
  return prices;
}

std::string constants_digest(const Function& function) {
  size_t digest = 0;
  for (const Expr& expr : post_order(function->body))
    if (const auto* constant = as<ConstantNode>(expr))
      digest = hash_combine(
          digest, std::hash<std::string_view>{}(
                      {static_cast<const char*>(constant->value.raw()), constant->value.bytes()}));
  return fmt::format("constants {:016x}", digest);
}

Result<ChosenCover> choose_within_budget(ChosenCover full, std::vector<NamedCover>& covers,
                                         std::vector<CostedCandidate>& candidates,
                                         const FindCovers& find, const Lower& lower_cover,
                                         LazyJudge& judge, CostDatabase& database,
                                         ChooseOptions options, Progress* progress) {
  const double max_error = options.max_error;
  const PricedSearch search(candidates, find);
  std::vector<NamedCover> fastest = TRY(search.covers(0));
  std::string fastest_text;
  for (const NamedCover& found : fastest) fastest_text += cover_text(found, candidates) + "\n";
  const std::string text = fmt::format("{}\n{}\n{}\nwithin {}", options.model_key,
                                       sha256_hex(fastest_text), options.constants, max_error);
  const std::string key = CostDatabase::key_of(text, options.context);
  std::vector<double> prices;
  std::optional<std::string> row = database.find("prices", key);
  nlohmann::json known = row ? parse_json(*row) : nlohmann::json();
  if (known.is_object() && known.contains("prices")) {
    for (const nlohmann::json& price : known["prices"])
      if (price.is_number()) prices.push_back(price.get<double>());
  } else if (options.frozen) {
    return error(ErrorCode::kFrozenCosts, "this model was never lowered within {}", max_error);
  } else {
    prices = TRY(find_prices(candidates, max_error, find, [&](const NamedCover& tried) {
      return run_and_judge(tried, lower_cover, judge, options.threads);
    }));
    if (!interrupted())
      database.put("prices", key, text, nlohmann::json({{"prices", prices}}).dump(),
                   options.context);
  }

  const size_t in_float32 = covers.size();
  for (double price : prices) {
    std::vector<NamedCover> found = TRY(search.covers(price));
    std::erase_if(found, [](const NamedCover& one) { return one.single_backend; });
    add_lowered(std::move(found), candidates, covers);
  }
  // Single backends at any error: those beyond the budget are refused when they are tried.
  std::erase_if(fastest, [](const NamedCover& one) { return !one.single_backend; });
  add_lowered(std::move(fastest), candidates, covers);
  if (covers.size() == in_float32) return full;
  options.max_error = kMargin * max_error;
  return choose_cover(covers, candidates, lower_cover, judge, database, options, progress);
}

}  // namespace collage
