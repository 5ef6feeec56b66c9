// The second stage of a compilation: what candidates offer and what is known of its cost. Each
// distinct function is asked about once: candidates of equal structure share an answer.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "choose/candidates.h"
#include "choose/tuning_task.h"
#include "choose/weight_forms.h"
#include "cost/analytic.h"
#include "cost/measured_costs.h"
#include "partition/candidate.h"

namespace collage {

struct CostedCandidate {
  CandidatePartition partition;
  Function function;  // extracted, flat
  // Null: nobody was asked (the host, until a cover needs it).
  std::shared_ptr<const TargetCosts> costs;
  bool merged = false;  // of kernels of a cover: no rule found it, and searches leave it out

  bool is_host() const { return partition.spec->is_host; }
  bool has_cost() const;  // of some variant
  bool works() const;     // some variant, as far as is known
};

// An answer with the variants of `known` at their positions, behind them those that are new. What
// is not offered any more is Invalid.
std::shared_ptr<const TargetCosts> numbered_as(const TargetCosts& known,
                                               std::shared_ptr<const TargetCosts> answer);

// With every cost measured, but the host's, which are not asked for. `progress` may be null.
Result<std::vector<CostedCandidate>> cost_candidates(
    const DataflowGraph& graph, std::vector<CandidatePartition> candidates, MeasuredCosts& costs,
    Progress* progress, RoundingLimit rounding = RoundingLimit::kDefault);

// Where `applies(given[c])`, `candidates[c]` gets the costs of `given[c]`, which must have some, as
// `change(given[c], costs)` leaves a copy of them. Candidates that shared costs still do. `given`
// and `candidates` may be the same.
template <typename Applies, typename Change>
void change_costs(const std::vector<CostedCandidate>& given,
                  std::vector<CostedCandidate>& candidates, Applies&& applies, Change&& change) {
  std::map<const TargetCosts*, std::shared_ptr<const TargetCosts>> changed;
  for (size_t c = 0; c < given.size(); ++c) {
    if (!applies(given[c])) continue;
    std::shared_ptr<const TargetCosts>& costs = changed[given[c].costs.get()];
    if (costs == nullptr) {
      auto copy = std::make_shared<TargetCosts>(*given[c].costs);
      change(given[c], *copy);
      costs = std::move(copy);
    }
    candidates[c].costs = costs;
  }
}

// What the user demands of variants beside being right. Others become Invalid.
struct VariantDemands {
  // No algorithms with larger rounding errors, none that may lose or spread NaN, and none that gave
  // other bits when it was run again.
  bool strict_accuracy = false;
  std::shared_ptr<WeightDemands> weights = {};  // none that keep weights as other programs cannot
};
void leave_out(const Function& function, TargetCosts& costs, const VariantDemands& demands);
// Of all candidates; those that shared costs still do.
void leave_out(std::vector<CostedCandidate>& candidates, const VariantDemands& demands);

struct ModelCosts {
  std::vector<CostedCandidate> candidates;  // those that are worth a search
  size_t pruned = 0;                        // those that never win, and have no costs
  size_t functions = 0;                     // distinct ones
  // kFrozenCosts: of the first that nobody was asked about, where nobody may be; the rest means
  // nothing then.
  Status missing = {};
};
// What all candidates but those that others dominate (partition/prune.h) offer, with what is known
// of its costs; the rest is measured where a cover uses it (cover_problem.h).
Result<ModelCosts> find_costs(const Candidates& candidates, const VariantDemands& demands,
                              MeasuredCosts& costs, Progress* progress);
// Where a fused one that stands for smaller ones is known not to work, the smaller ones too.
Result<ModelCosts> with_pruned(ModelCosts known, const Candidates& candidates,
                               const VariantDemands& demands, MeasuredCosts& costs,
                               Progress* progress);

// All that could be measured, of targets but the host.
Result<std::vector<TuningTask>> tasks_of(const Candidates& candidates, MeasuredCosts& costs);

// What a kernel of this model finds in the caches: warm where constants and intermediate tensors
// fit the private caches of `threads` cores; streaming where the constants alone exceed what a
// shared cache can be relied on to keep.
CacheState cache_state(const Function& function, int threads);

}  // namespace collage
