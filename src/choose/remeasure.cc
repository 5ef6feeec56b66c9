#include "choose/remeasure.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "choose/cover_problem.h"
#include "measure/blocks.h"

namespace collage {

namespace {

constexpr size_t kAgreeing = 2, kMostBlocks = 3;

// The kernels inside those nodes if they are all of them; none where one is there in part.
std::vector<const Cover::Kernel*> kernels_of(const IndexSet& nodes, const NamedCover& cover,
                                             const std::vector<CostedCandidate>& candidates) {
  std::vector<const Cover::Kernel*> inside;
  IndexSet covered;
  for (const Cover::Kernel& kernel : cover.kernels) {
    const IndexSet& own = candidates[kernel.candidate].partition.sub_graph.inside();
    if (!own.intersects(nodes)) continue;
    if (!own.is_subset_of(nodes)) return {};
    inside.push_back(&kernel);
    covered |= own;
  }
  if (!nodes.is_subset_of(covered)) inside.clear();
  return inside;
}

bool is_settled(const Measured& figure) {
  const std::vector<Block> blocks = blocks_of(figure);
  return blocks.size() >= kMostBlocks || undisturbed(blocks).size() >= kAgreeing;
}

// What kernels take one after the other, likely.
Interval likely_sum(const std::vector<const Cover::Kernel*>& kernels,
                    const std::vector<CostedCandidate>& candidates) {
  double sum = 0, squares = 0;
  for (const Cover::Kernel* kernel : kernels) {
    sum += kernel->seconds;
    const Measured* figure = measured(row_of(*kernel, candidates).cost);
    const double error = figure != nullptr ? standard_error(*figure) : 0;
    squares += error * error;
  }
  return {sum - 2 * std::sqrt(squares), sum + 2 * std::sqrt(squares)};
}

// What decides about this cover and is not settled; `add_row` receives it.
template <typename Add>
void find_unsettled(const NamedCover& cover, const std::vector<CostedCandidate>& candidates,
                    Add&& add_row) {
  const auto add = [&](size_t candidate, size_t variant) {
    const Measured* figure = measured(candidates[candidate].costs->variants[variant].cost);
    if (figure != nullptr && !is_settled(*figure)) add_row(CandidateVariant{candidate, variant});
  };
  for (const Cover::Kernel& kernel : cover.kernels) add(kernel.candidate, kernel.variant);
  for (size_t c = 0; c < candidates.size(); ++c) {
    const CostedCandidate& candidate = candidates[c];
    if (candidate.is_host() || !candidate.has_cost()) continue;
    const auto inside = kernels_of(candidate.partition.sub_graph.inside(), cover, candidates);
    if (inside.empty()) continue;
    const Interval together = likely_sum(inside, candidates);
    for (const bool lowered : {false, true}) {
      // What computes the same nodes on the same target under the same limit was timed in the same
      // moment.
      const bool same_moment = inside.size() == 1 && inside[0]->candidate == c &&
                               row_of(*inside[0], candidates).variant.lowered() == lowered;
      const MeasuredVariant* cheapest = fastest_variant(
          *candidate.costs,
          [&](const MeasuredVariant& row) { return row.variant.lowered() == lowered; });
      for (size_t v = 0; v < candidate.costs->variants.size(); ++v) {
        const MeasuredVariant& row = candidate.costs->variants[v];
        const Measured* figure = measured(row.cost);
        const bool own = same_moment && v == inside[0]->variant;
        if (figure == nullptr || row.variant.lowered() != lowered || own) continue;
        const double low = likely_interval(*figure).low + CoverCharges().launch;
        const bool decides = !same_moment && &row == cheapest && low < together.high;
        if (decides || (is_disturbed(*figure) && low < together.low)) add(c, v);
      }
    }
  }
}

}  // namespace

std::vector<CandidateVariant> worth_remeasuring(const std::vector<NamedCover>& covers,
                                                const std::vector<CostedCandidate>& candidates) {
  std::vector<CandidateVariant> list;
  // Candidates of equal functions, as in a network's repeated layers, share their costs.
  std::set<std::pair<const TargetCosts*, size_t>> known;
  for (const NamedCover& cover : covers)
    find_unsettled(cover, candidates, [&](CandidateVariant row) {
      if (known.emplace(candidates[row.candidate].costs.get(), row.variant).second)
        list.push_back(row);
    });
  return list;
}

Result<bool> remeasure(const std::vector<NamedCover>& covers,
                       std::vector<CostedCandidate>& candidates, MeasuredCosts& costs,
                       RoundingLimit rounding, Progress* progress) {
  const bool lowered = rounding == RoundingLimit::kAny;
  std::map<const TargetCosts*, std::vector<std::pair<size_t, Cost>>> changed;  // their variants
  std::vector<KernelQuestion> kernels;
  std::vector<CandidateVariant> asked;
  for (const CandidateVariant& row : worth_remeasuring(covers, candidates)) {
    const CostedCandidate& candidate = candidates[row.candidate];
    const Variant& variant = candidate.costs->variants[row.variant].variant;
    if (variant.lowered() != lowered) continue;
    kernels.push_back({candidate.function, candidate.partition.spec->target, variant});
    asked.push_back(row);
  }
  if (progress != nullptr && !kernels.empty())
    progress->update("measuring again", 0, kernels.size(), 0, 0);
  const std::vector<std::optional<Cost>> costs_now = TRY(costs.add_blocks(kernels));
  for (size_t k = 0; k < asked.size(); ++k)
    if (costs_now[k])
      changed[candidates[asked[k].candidate].costs.get()].emplace_back(asked[k].variant,
                                                                       *costs_now[k]);
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

}  // namespace collage
