#include "compiler/second_look.h"

#include <limits>

#include "compiler/cover_problem.h"

namespace collage {

namespace {

// What one kernel in the place of several may cost beside them: a figure is hardly ever wrong by
// more.
constexpr double kNear = 1.3;
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

}  // namespace

std::vector<CandidateVariant> worth_a_second_look(const NamedCover& cover,
                                                  const std::vector<CostedCandidate>& candidates) {
  std::vector<CandidateVariant> list;
  for (const CoverKernel& kernel : cover.kernels)
    list.push_back({kernel.candidate, kernel.variant});
  for (size_t c = 0; c < candidates.size(); ++c) {
    const CostedCandidate& candidate = candidates[c];
    if (candidate.is_host() || !candidate.has_cost()) continue;
    const auto inside = kernels_of(candidate.partition.sub_graph.inside(), cover, candidates);
    if (inside.size() < 2) continue;
    double together = 0, least = std::numeric_limits<double>::infinity();
    for (const CoverKernel* kernel : inside) together += kernel->seconds;
    CandidateVariant cheapest{c, 0};
    for (size_t v = 0; v < candidate.costs->variants.size(); ++v)
      if (const Measured* m = measured(candidate.costs->variants[v].cost);
          m != nullptr && m->seconds() < least) {
        least = m->seconds();
        cheapest.variant = v;
      }
    if (least + CoverProblem::kLaunchPenalty < kNear * together) list.push_back(cheapest);
  }
  return list;
}

Result<bool> look_again(const NamedCover& cover, std::vector<CostedCandidate>& candidates,
                        MeasuredCosts& costs, MeasuredCosts::Precision precision,
                        Progress* progress, int most_looks) {
  const std::vector<CandidateVariant> list = worth_a_second_look(cover, candidates);
  bool changed = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const CostedCandidate& candidate = candidates[list[i].candidate];
    const size_t variant = list[i].variant;
    const bool lowered = precision == MeasuredCosts::Precision::kLowered;
    if (candidate.costs->variants[variant].variant.lowered != lowered) continue;
    if (progress != nullptr) progress->update("measuring again", i, list.size(), 0, 0);
    std::optional<Cost> cost =
        TRY(costs.look_again(candidate.function, candidate.partition.spec->target,
                             candidate.costs->variants[variant].variant, most_looks));
    if (!cost) continue;
    changed = true;
    const std::shared_ptr<const TargetCosts> shared = candidate.costs;
    change_costs(
        candidates, candidates, [&](const CostedCandidate& c) { return c.costs == shared; },
        [&](const CostedCandidate&, TargetCosts& known) { known.variants[variant].cost = *cost; });
  }
  if (progress != nullptr) progress->finish("measuring again");
  return changed;
}

bool looks_disturbed(const TimedCover& cover) {
  return cover.measured && cover.predicted_seconds > kFar * cover.measured->median;
}

}  // namespace collage
