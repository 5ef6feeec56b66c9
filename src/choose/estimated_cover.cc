#include "choose/estimated_cover.h"

#include <algorithm>

namespace collage {

namespace {

bool is_of_row(const MeasuredVariant& row) {
  return measured(row.cost) != nullptr || row.elsewhere > 0;
}

}  // namespace

EstimatedSearch::EstimatedSearch(LightContext context, bool of_rows)
    : context_(std::move(context)),
      expected_(context_.costs, Missing::kExpect),
      wants_rows_(of_rows) {}

// Those of targets that compile fast, and of others, the host among them, where none of these can
// do some of it.
Candidates EstimatedSearch::fast_candidates() const {
  Candidates some = context_.candidates;
  const auto is_fast = [](const CandidatePartition& candidate) {
    return !candidate.spec->is_host && compiles_fast(*candidate.spec);
  };
  IndexSet reached;
  for (const CandidatePartition& candidate : some.found)
    if (is_fast(candidate)) reached |= candidate.sub_graph.inside();
  std::erase_if(some.found, [&](const CandidatePartition& candidate) {
    return !is_fast(candidate) && candidate.sub_graph.inside().is_subset_of(reached);
  });
  return some;
}

Result<CoverSearch> EstimatedSearch::search() {
  if (!candidates_) candidates_ = fast_candidates();
  if (!costs_)
    costs_ = TRY(find_costs(*candidates_, context_.demands, expected_, context_.progress));
  return find_covers(*candidates_->graph, costs_->candidates, expected_,
                     {.wanted = WantedCovers::kCheapest, .targets = &*candidates_});
}

Result<CoverSearch> EstimatedSearch::find() {
  constexpr int kMostAttempts = 3;
  constexpr size_t kMostCandidates = 10000;  // listing more takes longer than a first answer may
  if (!context_.costs.store().can_expect()) return unsupported("nothing is known of kernels");
  if (context_.candidates.found.size() > kMostCandidates)
    return unsupported("there are too many candidates");
  std::string last;  // cover; the same again would fail again
  for (int attempt = 1;; ++attempt) {
    const CoverSearch expected = TRY(search());
    const NamedCover& cover = expected.covers.at(0);
    if (cover.text == last) return unsupported("what is expected to be the fastest fails");
    last = cover.text;
    is_of_rows_ =
        std::all_of(cover.kernels.begin(), cover.kernels.end(), [&](const Cover::Kernel& kernel) {
          return expected.candidates[kernel.candidate].is_host() ||
                 is_of_row(row_of(kernel, expected.candidates));
        });
    if (wants_rows_ && !is_of_rows_) return unsupported("some kernels have no rows");
    tried_ = std::make_unique<LightSearch>(context_, nullptr);
    Result<CoverSearch> found = tried_->adopt(cover, expected.candidates);
    if (found) {
      found->covers[0].name = "by estimates";
      found->covers[0].origin = kFirstAnswer;
      return found;
    }
    if (attempt == kMostAttempts || context_.costs.is_stopped()) return found;
    refuse_failed(cover, expected.candidates);
  }
}

void EstimatedSearch::refuse_failed(const NamedCover& cover,
                                    const std::vector<CostedCandidate>& candidates) {
  for (const Cover::Kernel& kernel : cover.kernels) {
    const CostedCandidate& own = candidates[kernel.candidate];
    const Variant& variant = row_of(kernel, candidates).variant;
    for (const CostedCandidate& seen : tried_->seen()) {
      if (seen.partition.spec != own.partition.spec ||
          !(seen.partition.sub_graph.inside() == own.partition.sub_graph.inside()))
        continue;
      const bool works = std::any_of(
          seen.costs->variants.begin(), seen.costs->variants.end(), [&](const auto& row) {
            return row.variant == variant && !std::holds_alternative<Invalid>(row.cost);
          });
      if (!works) refuse(kernel_text(own.partition, variant), "it failed when it was tried");
    }
  }
}

void EstimatedSearch::refuse(const std::string& kernel, const std::string& reason) {
  if (!costs_) return;
  for (CostedCandidate& entry : costs_->candidates) {
    if (entry.costs == nullptr) continue;
    for (size_t v = 0; v < entry.costs->variants.size(); ++v) {
      if (kernel_text(entry.partition, entry.costs->variants[v].variant) != kernel) continue;
      auto costs = std::make_shared<TargetCosts>(*entry.costs);
      costs->variants[v].cost = Invalid{reason};
      entry.costs = std::move(costs);
    }
  }
}

Result<CoverSearch> standing_cover(const LightContext& context,
                                   const std::optional<PlanRow>& known) {
  if (known) {
    // What is known of its kernels the search counts.
    CostCounts& counts = context.costs.store().counts;
    const CostCounts before = counts;
    Result<CoverSearch> again = LightCovers(context, {nullptr}).find_again(*known);
    counts = before;
    return again;
  }
  if (context.costs.is_frozen()) return unsupported("no plan is known");
  return EstimatedSearch(context, true).find();
}

void add_standing(const CoverSearch& standing, CoverSearch& found) {
  NamedCover cover = standing.covers[0];
  cover.stays = true;
  add_cover(cover, standing.candidates, found);
}

}  // namespace collage
