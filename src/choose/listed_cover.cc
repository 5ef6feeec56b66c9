#include "choose/listed_cover.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/text_printer.h"

namespace collage {

namespace {

bool was_searched_for(const CostedCandidate& candidate, const Variant& variant,
                      MeasuredCosts& costs) {
  const std::optional<TargetCosts> searched = costs.searched_schedules(
      canonical_text(candidate.function), candidate.partition.spec->target);
  return searched && std::any_of(searched->variants.begin(), searched->variants.end(),
                                 [&](const auto& row) { return row.variant == variant; });
}

// Variants that a search found, by the costs of the candidates that the cover uses them for.
std::map<const TargetCosts*, Variant> found_schedules(
    const NamedCover& cover, const std::vector<CostedCandidate>& candidates, MeasuredCosts& costs) {
  std::map<const TargetCosts*, Variant> found;
  std::set<std::pair<const TargetCosts*, size_t>> asked;  // layers of equal functions share costs
  for (const CoverKernel& kernel : cover.kernels) {
    const CostedCandidate& candidate = candidates[kernel.candidate];
    const Variant& variant = kernel.row().variant;
    if (!candidate.is_host() && candidate.costs != nullptr &&
        asked.emplace(kernel.costs.get(), kernel.variant).second &&
        was_searched_for(candidate, variant, costs))
      found.emplace(candidate.costs.get(), variant);
  }
  return found;
}

size_t position_of(const TargetCosts& costs, const Variant& variant) {
  const auto row = std::find_if(costs.variants.begin(), costs.variants.end(),
                                [&](const MeasuredVariant& one) { return one.variant == variant; });
  return static_cast<size_t>(row - costs.variants.begin());
}

}  // namespace

Result<CoverSearch> with_listed_cover(const DataflowGraph& graph, CoverSearch search,
                                      MeasuredCosts& costs, CostEstimator& estimator,
                                      const std::vector<PartitionSpecPtr>& specs,
                                      const std::vector<std::vector<size_t>>& sets) {
  NamedCover cover = search.covers[0];
  CoverSearch listed;
  listed.candidates = search.candidates;
  bool changed = false;
  while (true) {
    const auto found = found_schedules(cover, listed.candidates, costs);
    if (found.empty()) break;
    const auto is_used = [&](const CostedCandidate& candidate) {
      return found.count(candidate.costs.get()) > 0;
    };
    change_costs(listed.candidates, listed.candidates, is_used,
                 [&](const CostedCandidate& candidate, TargetCosts& known) {
                   std::erase_if(known.variants, [&](const MeasuredVariant& row) {
                     return row.variant == found.at(candidate.costs.get());
                   });
                 });
    listed = TRY(find_compatible_covers(graph, listed.candidates, estimator, specs, sets,
                                        {WantedCovers::kCheapest}));
    cover = listed.covers[0];
    changed = true;
  }
  if (!changed) return search;
  // In terms of all costs.
  for (CoverKernel& kernel : cover.kernels) {
    CostedCandidate& candidate = search.candidates[kernel.candidate];
    if (candidate.costs == nullptr) candidate.costs = kernel.costs;
    const size_t variant = position_of(*candidate.costs, kernel.row().variant);
    if (variant == candidate.costs->variants.size()) return search;
    kernel.costs = candidate.costs;
    kernel.variant = variant;
  }
  cover.name = "listed schedules";
  const auto single = std::find_if(search.covers.begin(), search.covers.end(),
                                   [](const NamedCover& one) { return one.single_backend; });
  search.covers.insert(single, std::move(cover));
  return search;
}

}  // namespace collage
