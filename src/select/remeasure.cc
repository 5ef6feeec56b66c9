#include "select/remeasure.h"

#include <limits>
#include <map>
#include <optional>

#include "cover/cover_problem.h"

namespace collage {

namespace {

// What one kernel in the place of several may cost beside them: a figure is hardly ever wrong by
// more.
constexpr double kNear = 1.3;
// Where a tenth of the samples is so much above another tenth, something disturbed them.
constexpr double kSpread = 1.3;
// What a cover is predicted to take at most, as a part of what it took: predictions are hardly ever
// wrong by more where nothing was disturbed.
constexpr double kFar = 1.12;

// The kernels inside those nodes if they are all of them; none where one is there in part.
std::vector<const CoverKernel*> kernels_of(const IndexSet& nodes, const NamedCover& cover,
                                           const std::vector<CostedCandidate>& candidates) {
  std::vector<const CoverKernel*> inside;
  IndexSet covered;
  for (const CoverKernel& kernel : cover.kernels) {
    const IndexSet& own = candidates[kernel.candidate].partition.sub_graph.inside();
    if (!own.intersects(nodes)) continue;
    if (!own.is_subset_of(nodes)) return {};
    inside.push_back(&kernel);
    covered |= own;
  }
  if (!nodes.is_subset_of(covered)) inside.clear();
  return inside;
}

std::optional<size_t> cheapest_variant(const TargetCosts& costs, bool lowered) {
  std::optional<size_t> cheapest;
  double least = std::numeric_limits<double>::infinity();
  for (size_t v = 0; v < costs.variants.size(); ++v) {
    const Measured* m = measured(costs.variants[v].cost);
    if (m == nullptr || costs.variants[v].variant.lowered != lowered || m->seconds() >= least)
      continue;
    least = m->seconds();
    cheapest = v;
  }
  return cheapest;
}

// Whether only what disturbed it keeps a figure from being less than that.
bool may_be_less(const Measured& figure, double seconds) {
  return figure.p90 > kSpread * figure.p10 && figure.p10 < seconds;
}

}  // namespace

std::vector<CandidateVariant> worth_remeasuring(const NamedCover& cover,
                                                const std::vector<CostedCandidate>& candidates) {
  const auto row_of = [&](size_t candidate, size_t variant) -> const MeasuredVariant& {
    return candidates[candidate].costs->variants[variant];
  };
  std::vector<CandidateVariant> list;
  for (const CoverKernel& kernel : cover.kernels)
    list.push_back({kernel.candidate, kernel.variant});
  for (size_t c = 0; c < candidates.size(); ++c) {
    const CostedCandidate& candidate = candidates[c];
    if (candidate.is_host() || !candidate.has_cost()) continue;
    const auto inside = kernels_of(candidate.partition.sub_graph.inside(), cover, candidates);
    if (inside.empty()) continue;
    double together = 0;
    for (const CoverKernel* kernel : inside) together += kernel->seconds;
    for (const bool lowered : {false, true}) {
      // All that computes the same nodes in the same precision was timed together.
      const bool rivals =
          inside.size() == 1 &&
          row_of(inside[0]->candidate, inside[0]->variant).variant.lowered == lowered;
      const std::optional<size_t> cheapest = cheapest_variant(*candidate.costs, lowered);
      for (size_t v = 0; v < candidate.costs->variants.size(); ++v) {
        const Measured* m = measured(row_of(c, v).cost);
        if (m == nullptr || row_of(c, v).variant.lowered != lowered) continue;
        if (rivals && c == inside[0]->candidate && v == inside[0]->variant) continue;
        const bool near =
            !rivals && v == cheapest && m->seconds() + CoverCharges().launch < kNear * together;
        if (near || may_be_less(*m, together)) list.push_back({c, v});
      }
    }
  }
  return list;
}

Result<bool> remeasure(const NamedCover& cover, const std::vector<CostedCandidate>& found,
                       std::vector<CostedCandidate>& candidates, MeasuredCosts& costs,
                       MeasuredCosts::Precision precision, Progress* progress, int most_times) {
  const std::vector<CandidateVariant> list = worth_remeasuring(cover, found);
  const bool lowered = precision == MeasuredCosts::Precision::kLowered;
  std::map<const TargetCosts*, std::vector<std::pair<size_t, Cost>>> changed;  // their variants
  for (size_t i = 0; i < list.size(); ++i) {
    const CostedCandidate& candidate = found[list[i].candidate];
    const Variant& variant = candidate.costs->variants[list[i].variant].variant;
    if (variant.lowered != lowered) continue;
    if (progress != nullptr) progress->update("measuring again", i, list.size(), 0, 0);
    const std::optional<Cost> cost = TRY(
        costs.remeasure(candidate.function, candidate.partition.spec->target, variant, most_times));
    if (cost) changed[candidate.costs.get()].emplace_back(list[i].variant, *cost);
  }
  if (progress != nullptr) progress->finish("measuring again");
  change_costs(
      candidates, candidates,
      [&](const CostedCandidate& candidate) { return changed.count(candidate.costs.get()) > 0; },
      [&](const CostedCandidate& candidate, TargetCosts& known) {
        for (const auto& [variant, cost] : changed.at(candidate.costs.get()))
          known.variants[variant].cost = cost;
      });
  return !changed.empty();
}

bool looks_disturbed(const TimedCover& cover) {
  return cover.measured && cover.reckoned_seconds > kFar * cover.measured->median;
}

}  // namespace collage
