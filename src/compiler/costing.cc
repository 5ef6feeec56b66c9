#include "compiler/costing.h"

#include <algorithm>

#include "base/cache_sizes.h"
#include "compiler/tuning_task.h"
#include "ir/visitor.h"

namespace collage {

bool is_allowed(const DataflowGraph& graph, const CandidatePartition& candidate,
                const TargetConstraints& constraints) {
  bool allowed = true;
  candidate.sub_graph.inside().for_each([&](size_t index) {
    if (const auto* call = as<CallNode>(graph.node(index).expr))
      allowed = allowed && constraints.allows(candidate.spec->target, *call);
  });
  return allowed;
}

bool CostedCandidate::has_cost() const {
  return costs != nullptr &&
         std::any_of(costs->variants.begin(), costs->variants.end(),
                     [](const MeasuredVariant& row) { return measured(row.cost) != nullptr; });
}

std::vector<CandidatePartition> gather_candidates(const DataflowGraph& graph,
                                                  const std::vector<PartitionSpecPtr>& specs,
                                                  const TargetConstraints& constraints) {
  GatherOptions options;
  options.primitives = true;
  options.allowed = [&](const CandidatePartition& candidate) {
    return candidate.spec->is_host || is_allowed(graph, candidate, constraints);
  };
  return gather_candidates(graph, specs, options);
}

Result<std::vector<CostedCandidate>> cost_candidates(const DataflowGraph& graph,
                                                     std::vector<CandidatePartition> candidates,
                                                     MeasuredCosts& costs, Progress* progress,
                                                     size_t* distinct_functions,
                                                     MeasuredCosts::Precision precision) {
  std::vector<CostedCandidate> result;
  TaskExtraction extraction(graph);
  for (CandidatePartition& candidate : candidates) {
    auto [function, index, new_target] = TRY(extraction.add(candidate));
    if (new_target) {
      TuningTask& task = extraction.tasks()[index];
      size_t missing = costs.count_unknown(task.text, {candidate.spec->target}, precision);
      if (missing > 0 && costs.is_frozen())
        return costs.frozen_miss(task.text, candidate.spec->target);
      task.unknown += missing;
    }
    result.push_back({std::move(candidate), std::move(function), nullptr});
  }
  std::vector<TuningTask>& tasks = extraction.tasks();
  std::erase_if(tasks, [](const TuningTask& task) { return task.targets.empty(); });
  if (distinct_functions != nullptr) *distinct_functions = tasks.size();
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
  return result;
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
