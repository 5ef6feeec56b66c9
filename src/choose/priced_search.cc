#include "choose/priced_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"

namespace collage {

namespace {

// Changes no sum of seconds, but kernels beyond the budget are left out.
constexpr double kLeastPrice = 1e-30;
constexpr double kWidest = 2;  // a factor between scattered prices and the one they are around
constexpr int kMostSearches = 24;
constexpr double kRounding = 1e-9;  // of sums, relative

// Layers are often equal, and at one price all of them would be lowered or none: errors cost less
// the later they are made, as they have less way to grow. `last` is the graph's last node.
double weight(const CostedCandidate& candidate, size_t last, int scatter) {
  const size_t end = candidate.partition.sub_graph.inside().last();
  const double position = static_cast<double>(end) / static_cast<double>(last);
  double factor = 2 - position;
  if (scatter != 0) {
    const size_t hash = hash_combine(static_cast<size_t>(scatter), end);
    const double chance = static_cast<double>(hash % 1024) / 1023;  // 0 to 1
    factor *= std::pow(kWidest, 2 * chance - 1);
  }
  return factor;
}

}  // namespace

PricedSearch::PricedSearch(std::vector<CostedCandidate> candidates, double limit,
                           const FindCovers& find)
    : candidates_(std::move(candidates)), limit_(limit), find_(find) {
  for (const CostedCandidate& candidate : candidates_)
    last_ = std::max(last_, candidate.partition.sub_graph.inside().last());
}

double PricedSearch::charge(const CostedCandidate& candidate, double error,
                            const Price& price) const {
  if (error == 0) return 0;  // at an infinite price too
  return price.seconds * weight(candidate, last_, price.scatter) * error * error;
}

// The candidates with the price of their errors added to what they cost.
std::vector<CostedCandidate> PricedSearch::priced(const Price& price) const {
  std::vector<CostedCandidate> result = candidates_;
  for (CostedCandidate& candidate : result) {
    if (price.seconds == 0 || !has_lowered_variants(candidate)) continue;
    auto costs = std::make_shared<TargetCosts>(*candidate.costs);
    for (MeasuredVariant& row : costs->variants) {
      auto* m = std::get_if<Measured>(&row.cost);
      if (m == nullptr) continue;
      const double paid = charge(candidate, row.error, price);
      if (row.error > limit_ || paid == kInfinity) {
        row.cost = Invalid{"its error alone is beyond the budget"};
      } else {
        *m = {m->median + paid, m->p10 + paid, m->p90 + paid, m->samples};
      }
    }
    candidate.costs = std::move(costs);
  }
  return result;
}

Result<std::vector<NamedCover>> PricedSearch::covers(const Price& price) const {
  CoverSearch found = TRY(find_(priced(price)));
  for (NamedCover& cover : found.covers)
    for (CoverKernel& kernel : cover.kernels) {
      const CostedCandidate& candidate = candidates_[kernel.candidate];
      if (!has_lowered_variants(candidate)) continue;
      kernel.costs = candidate.costs;
      const double paid = charge(candidate, kernel.row().error, price);
      for (double* seconds : {&kernel.seconds, &cover.predicted_seconds, &cover.plain_seconds})
        *seconds -= paid;
    }
  return std::move(found.covers);
}

PricedCover PricedSearch::charged(NamedCover cover, const Price& price) const {
  PricedCover result{std::move(cover), price};
  for (const CoverKernel& kernel : result.cover.kernels)
    result.charged += charge(candidates_[kernel.candidate], kernel.row().error, {1, price.scatter});
  return result;
}

Result<PricedCover> PricedSearch::cheapest(const Price& price) const {
  return charged(std::move(TRY(covers(price)).at(0)), price);
}

Result<PricedCover> PricedSearch::within(double estimate, int scatter) {
  std::vector<PricedCover>& known = known_[scatter];
  if (known.empty() && scatter != 0) {
    TRY(within(estimate));  // where prices end, scattering them changes nothing
    for (const PricedCover& end : {known_[0].front(), known_[0].back()})
      known.push_back(charged(end.cover, {end.price.seconds, scatter}));
  } else if (known.empty()) {
    for (double seconds : {kLeastPrice, kInfinity})
      known.push_back(TRY(cheapest({seconds, scatter})));
  }
  for (int search = 0;; ++search) {
    auto fits = std::find_if(known.begin(), known.end(), [&](const PricedCover& one) {
      return estimated_error(one.cover) <= estimate;
    });
    if (fits == known.begin()) return *fits;
    if (fits == known.end()) --fits;
    const PricedCover &dear = *fits, &cheap = *(fits - 1);
    const double tie = (dear.cover.predicted_seconds - cheap.cover.predicted_seconds) /
                       (cheap.charged - dear.charged);
    if (!(tie > kLeastPrice && tie < kInfinity) || search == kMostSearches) return dear;
    PricedCover between = TRY(cheapest({tie, scatter}));
    const auto cost = [&](const PricedCover& one) {
      return one.cover.predicted_seconds + tie * one.charged;
    };
    if (cost(between) >= (1 - kRounding) * cost(dear)) return dear;
    known.insert(fits, std::move(between));
  }
}

}  // namespace collage
