#include "choose/costing.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/processor.h"
#include "ir/visitor.h"
#include "partition/prune.h"

namespace collage {

bool CostedCandidate::has_cost() const {
  return costs != nullptr &&
         std::any_of(costs->variants.begin(), costs->variants.end(),
                     [](const MeasuredVariant& row) { return measured(row.cost) != nullptr; });
}

bool CostedCandidate::works() const {
  return costs != nullptr && std::any_of(costs->variants.begin(), costs->variants.end(),
                                         [](const MeasuredVariant& row) {
                                           return !std::holds_alternative<Invalid>(row.cost);
                                         });
}

std::shared_ptr<const TargetCosts> numbered_as(const TargetCosts& known,
                                               std::shared_ptr<const TargetCosts> answer) {
  const auto is_same = [](const MeasuredVariant& a, const MeasuredVariant& b) {
    return a.variant == b.variant;
  };
  if (answer->variants.size() >= known.variants.size() &&
      std::equal(known.variants.begin(), known.variants.end(), answer->variants.begin(), is_same))
    return answer;
  auto result = std::make_shared<TargetCosts>(*answer);
  result->variants = known.variants;
  for (MeasuredVariant& row : result->variants)
    row.cost = Invalid{answer->refusal.empty() ? "it is not offered any more" : answer->refusal,
                       answer->failure};
  for (const MeasuredVariant& row : answer->variants) {
    const auto at = std::find_if(result->variants.begin(), result->variants.end(),
                                 [&](const auto& other) { return is_same(other, row); });
    if (at != result->variants.end()) {
      *at = row;
    } else {
      result->variants.push_back(row);
    }
  }
  return result;
}

namespace {

// The distinct functions of candidates, and their candidates without costs.
struct Tasks {
  std::vector<CostedCandidate> candidates;
  std::vector<TuningTask> tasks;  // what is known first, then small sub-graphs
};

template <typename CountUnknown>
Result<Tasks> tasks_of(const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
                       CostStore& store, CountUnknown&& count_unknown,
                       RoundingLimit rounding = RoundingLimit::kDefault) {
  Tasks result;
  TaskExtraction extraction(graph);
  for (CandidatePartition& candidate : candidates) {
    Function function = TRY(extraction.add(candidate)).function;
    result.candidates.push_back({std::move(candidate), std::move(function), nullptr});
  }
  std::vector<CostKey> keys;
  for (const TuningTask& task : extraction.tasks())
    for (size_t t = 0; store.fetches() && t < task.targets.size(); ++t)
      keys.push_back({task.text, task.targets[t], rounding});
  store.expect(keys);
  for (TuningTask& task : extraction.tasks()) {
    if (task.targets.empty()) continue;
    task.unknown = count_unknown(task);
    result.tasks.push_back(std::move(task));
  }
  std::stable_sort(result.tasks.begin(), result.tasks.end(),
                   [](const TuningTask& a, const TuningTask& b) {
                     if ((a.unknown > 0) != (b.unknown > 0)) return b.unknown > 0;
                     return function_flops(a.function) < function_flops(b.function);
                   });
  return result;
}

// Gives the tasks' candidates what `answer` says of each task's targets.
template <typename Answer>
Status fill_in(Tasks& all, std::string_view phase, double seconds_each, Progress* progress,
               Answer&& answer) {
  size_t unknown = 0, asked = 0, done = 0, cached = 0, failed = 0;
  for (const TuningTask& task : all.tasks) {
    unknown += task.unknown > 0;
    asked += task.unknown;
  }
  if (progress != nullptr && unknown > 0)
    progress->begin(phase, unknown, all.tasks.size(), static_cast<double>(asked) * seconds_each);
  constexpr size_t kSaid = 16;  // asked for between two words of progress
  for (size_t first = 0; first < all.tasks.size(); first += kSaid) {
    const std::span<const TuningTask> some =
        std::span(all.tasks).subspan(first, std::min(kSaid, all.tasks.size() - first));
    std::vector<MeasuredCosts::FunctionQuestion> questions;
    for (const TuningTask& task : some) questions.push_back({task.function, task.targets});
    std::vector<std::vector<TargetCosts>> answers = TRY(answer(questions));
    for (size_t i = 0; i < some.size(); ++i) {
      for (size_t t = 0; t < answers[i].size(); ++t) {
        failed += answers[i][t].variants.empty();
        auto shared = std::make_shared<const TargetCosts>(std::move(answers[i][t]));
        for (size_t candidate : some[i].candidates[t]) all.candidates[candidate].costs = shared;
      }
      cached += some[i].unknown == 0;
    }
    done += some.size();
    if (progress != nullptr) progress->update(phase, done, all.tasks.size(), cached, failed);
  }
  if (progress != nullptr) progress->finish(phase);
  return {};
}

// What candidates offer, with what is known of its costs; without `pruned`.
Result<ModelCosts> offers_of(const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
                             MeasuredCosts& costs, Progress* progress) {
  ModelCosts answer;
  Tasks all =
      TRY(tasks_of(graph, std::move(candidates), costs.store(), [&](const TuningTask& task) {
        return static_cast<size_t>(
            std::count_if(task.targets.begin(), task.targets.end(), [&](const Target& target) {
              const bool known = costs.is_offer_known(task.function, task.text, target);
              if (!known && costs.is_frozen() && answer.missing.ok())
                answer.missing = costs.frozen_miss(task.text, target);
              return !known;
            }));
      }));
  if (!answer.missing.ok()) return answer;
  constexpr double kSecondsEach = 0.01;
  TRY(fill_in(all, "listing kernels", kSecondsEach, progress,
              [&](const auto& questions) { return costs.offers(questions); }));
  answer.functions = all.tasks.size();
  answer.candidates = std::move(all.candidates);
  return answer;
}

}  // namespace

Result<std::vector<CostedCandidate>> cost_candidates(const DataflowGraph& graph,
                                                     std::vector<CandidatePartition> candidates,
                                                     MeasuredCosts& costs, Progress* progress,
                                                     RoundingLimit rounding) {
  const auto count_unknown = [&](const TuningTask& task) {
    return costs.count_unknown(task.text, task.targets, rounding);
  };
  Tasks all = TRY(tasks_of(graph, std::move(candidates), costs.store(), count_unknown, rounding));
  TRY(fill_in(all, "measuring", costs.store().seconds_per_measurement(), progress,
              [&](const auto& questions) { return costs.function_costs(questions, rounding); }));
  return std::move(all.candidates);
}

void leave_out(const Function& function, TargetCosts& costs, const VariantDemands& demands) {
  for (MeasuredVariant& row : costs.variants) {
    if (demands.strict_accuracy && !row.variant.rounding.none())
      row.cost = Invalid{"left out by strict accuracy"};
    if (demands.strict_accuracy && !row.variant.keeps_nan())
      row.cost = Invalid{row.variant.loses_nan ? "left out by strict accuracy: it may lose NaN"
                                               : "left out by strict accuracy: it may spread NaN"};
    if (demands.strict_accuracy && !row.repeatable)
      row.cost = Invalid{"its results differ in bits from run to run, or were not compared"};
  }
  if (demands.weights != nullptr) demands.weights->leave_out(function, costs);
}

void leave_out(std::vector<CostedCandidate>& candidates, const VariantDemands& demands) {
  if (!demands.strict_accuracy && demands.weights == nullptr) return;
  if (demands.weights != nullptr) demands.weights->decide(candidates);
  // Candidates that share costs still do, where the same is asked of their weights.
  std::map<std::pair<const TargetCosts*, std::string>, std::shared_ptr<const TargetCosts>> left;
  for (CostedCandidate& candidate : candidates) {
    if (candidate.costs == nullptr) continue;
    const std::string text =
        demands.weights != nullptr ? demands.weights->text(candidate.function) : "";
    std::shared_ptr<const TargetCosts>& costs = left[{candidate.costs.get(), text}];
    if (costs == nullptr) {
      auto copy = std::make_shared<TargetCosts>(*candidate.costs);
      leave_out(candidate.function, *copy, demands);
      costs = std::move(copy);
    }
    candidate.costs = costs;
  }
}

namespace {

bool is_broken_fusion(const CostedCandidate& candidate) {
  return !candidate.merged && candidate.costs != nullptr && !candidate.works() &&
         fusion_never_loses(candidate.partition);
}

}  // namespace

Result<ModelCosts> find_costs(const Candidates& candidates, const VariantDemands& demands,
                              MeasuredCosts& costs, Progress* progress) {
  std::vector<CandidatePartition> pruned;
  std::vector<CandidatePartition> kept =
      prune_dominated(*candidates.graph, candidates.found, pruned);
  ModelCosts result = TRY(offers_of(*candidates.graph, std::move(kept), costs, progress));
  leave_out(result.candidates, demands);
  result.pruned = pruned.size();
  return with_pruned(std::move(result), candidates, demands, costs, progress);
}

Result<ModelCosts> with_pruned(ModelCosts known, const Candidates& candidates,
                               const VariantDemands& demands, MeasuredCosts& costs,
                               Progress* progress) {
  if (known.pruned == 0 ||
      std::none_of(known.candidates.begin(), known.candidates.end(), is_broken_fusion))
    return known;
  std::vector<CandidatePartition> pruned;
  prune_dominated(*candidates.graph, candidates.found, pruned);
  ModelCosts smaller = TRY(offers_of(*candidates.graph, std::move(pruned), costs, progress));
  leave_out(smaller.candidates, demands);
  std::move(smaller.candidates.begin(), smaller.candidates.end(),
            std::back_inserter(known.candidates));
  known.functions += smaller.functions;
  known.missing = smaller.missing;
  known.pruned = 0;
  return known;
}

Result<std::vector<TuningTask>> tasks_of(const Candidates& candidates, MeasuredCosts& costs) {
  std::vector<CandidatePartition> pruned;
  std::vector<CandidatePartition> kept =
      prune_dominated(*candidates.graph, candidates.found, pruned);
  const auto count_unknown = [&](const TuningTask& task) {
    return costs.count_unknown(task.text, task.targets);
  };
  return std::move(
      TRY(tasks_of(*candidates.graph, std::move(kept), costs.store(), count_unknown)).tasks);
}

CacheState cache_state(const Function& function, int threads) {
  // Of a shared cache that other processes and machines use too, whatever its nominal size: what
  // survives a run of some milliseconds.
  constexpr double kSharedCache = 24 << 20;
  const double private_caches = threads * static_cast<double>(private_cache_bytes());
  double all = 0;
  for (const Expr& expr : post_order(function->body))
    if (expr->kind() != ExprKind::kTuple) all += type_bytes(expr->type());
  if (all <= private_caches) return CacheState::kWarm;
  return constant_bytes(function) <= kSharedCache ? CacheState::kCold : CacheState::kStreaming;
}

}  // namespace collage
