#include "cover/costing.h"

#include <algorithm>
#include <iterator>

#include "base/cache_sizes.h"
#include "ir/visitor.h"
#include "partition/prune.h"

namespace collage {

bool CostedCandidate::has_cost() const {
  return costs != nullptr &&
         std::any_of(costs->variants.begin(), costs->variants.end(),
                     [](const MeasuredVariant& row) { return measured(row.cost) != nullptr; });
}

namespace {

// Without `pruned`.
Result<ModelCosts> costs_of(const DataflowGraph& graph, std::vector<CandidatePartition> candidates,
                            MeasuredCosts& costs, Progress* progress,
                            MeasuredCosts::Precision precision = {}) {
  ModelCosts answer;
  std::vector<CostedCandidate>& result = answer.candidates;
  TaskExtraction extraction(graph);
  for (CandidatePartition& candidate : candidates) {
    auto [function, index, new_target] = TRY(extraction.add(candidate));
    if (new_target) {
      TuningTask& task = extraction.tasks()[index];
      size_t missing = costs.count_unknown(task.text, {candidate.spec->target}, precision);
      if (missing > 0 && costs.is_frozen()) {
        answer.missing = costs.frozen_miss(task.text, candidate.spec->target);
        return answer;
      }
      task.unknown += missing;
    }
    result.push_back({std::move(candidate), std::move(function), nullptr});
  }
  std::vector<TuningTask>& tasks = extraction.tasks();
  std::erase_if(tasks, [](const TuningTask& task) { return task.targets.empty(); });
  answer.functions = tasks.size();
  // What is known first, then small sub-graphs: an interrupted run has the costs that most covers
  // need, and the time left is that of measuring.
  size_t unknown = 0, measurements = 0;
  for (const TuningTask& task : tasks) {
    unknown += task.unknown > 0;
    measurements += task.unknown;
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const TuningTask& a, const TuningTask& b) {
    if ((a.unknown > 0) != (b.unknown > 0)) return b.unknown > 0;
    return function_flops(a.function) < function_flops(b.function);
  });
  if (progress != nullptr && unknown > 0)
    progress->begin("measuring", unknown, tasks.size(),
                    static_cast<double>(measurements) * costs.seconds_per_measurement());
  size_t done = 0, cached = 0, failed = 0;
  for (const TuningTask& task : tasks) {
    std::vector<TargetCosts> answers =
        TRY(costs.function_costs(task.function, task.targets, precision));
    for (size_t t = 0; t < answers.size(); ++t) {
      failed += answers[t].variants.empty();
      auto shared = std::make_shared<const TargetCosts>(std::move(answers[t]));
      for (size_t candidate : task.candidates[t]) result[candidate].costs = shared;
    }
    cached += task.unknown == 0;
    ++done;
    if (progress != nullptr) progress->update("measuring", done, tasks.size(), cached, failed);
  }
  if (progress != nullptr) progress->finish("measuring");
  return answer;
}

}  // namespace

Result<std::vector<CostedCandidate>> cost_candidates(const DataflowGraph& graph,
                                                     std::vector<CandidatePartition> candidates,
                                                     MeasuredCosts& costs, Progress* progress,
                                                     MeasuredCosts::Precision precision) {
  ModelCosts answer = TRY(costs_of(graph, std::move(candidates), costs, progress, precision));
  TRY(answer.missing);
  return std::move(answer.candidates);
}

void leave_out(TargetCosts& costs, const VariantDemands& demands) {
  for (MeasuredVariant& row : costs.variants) {
    if (demands.strict_accuracy && row.variant.relaxed)
      row.cost = Invalid{"left out by strict accuracy"};
    if (demands.deterministic && !row.repeatable)
      row.cost = Invalid{"its results differ in bits from run to run"};
  }
}

void leave_out(std::vector<CostedCandidate>& candidates, const VariantDemands& demands) {
  if (!demands.strict_accuracy && !demands.deterministic) return;
  auto is_costed = [](const CostedCandidate& candidate) { return candidate.costs != nullptr; };
  change_costs(candidates, candidates, is_costed,
               [&](const CostedCandidate&, TargetCosts& costs) { leave_out(costs, demands); });
}

namespace {

bool is_broken_fusion(const CostedCandidate& candidate) {
  return candidate.costs != nullptr && !candidate.has_cost() &&
         fusion_never_loses(candidate.partition);
}

}  // namespace

Result<ModelCosts> find_costs(const Candidates& candidates, const VariantDemands& demands,
                              MeasuredCosts& costs, Progress* progress) {
  const DataflowGraph& graph = *candidates.graph;
  std::vector<CandidatePartition> pruned;
  std::vector<CandidatePartition> kept = prune_dominated(graph, candidates.found, pruned);
  ModelCosts result = TRY(costs_of(graph, std::move(kept), costs, progress));
  leave_out(result.candidates, demands);
  if (std::any_of(result.candidates.begin(), result.candidates.end(), is_broken_fusion)) {
    ModelCosts smaller = TRY(costs_of(graph, std::move(pruned), costs, progress));
    leave_out(smaller.candidates, demands);
    std::move(smaller.candidates.begin(), smaller.candidates.end(),
              std::back_inserter(result.candidates));
    result.functions += smaller.functions;
    result.missing = smaller.missing;
    pruned.clear();
  }
  result.pruned = pruned.size();
  return result;
}

Result<std::vector<TuningTask>> tasks_of(const Candidates& candidates, MeasuredCosts& costs) {
  std::vector<CandidatePartition> pruned;
  TaskExtraction extraction(*candidates.graph);
  for (const CandidatePartition& candidate :
       prune_dominated(*candidates.graph, candidates.found, pruned))
    TRY(extraction.add(candidate));
  std::vector<TuningTask> tasks;
  for (TuningTask& task : extraction.tasks()) {
    if (task.targets.empty()) continue;
    task.unknown = costs.count_unknown(task.text, task.targets);
    tasks.push_back(std::move(task));
  }
  return tasks;
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
