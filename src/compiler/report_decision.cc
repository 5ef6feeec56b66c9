#include "compiler/report_decision.h"

#include <optional>

#include "base/log.h"
#include "choose/in_situ_ratio.h"
#include "choose/prediction.h"
#include "compiler/describe_cover.h"
#include "partition/rewrite.h"
#include "partition/stated_kernels.h"

namespace collage {

namespace {

void report_prediction(const Decision& decision, CompileContext& context, CompileReport& report) {
  const NamedCover& cover = decision.cover();
  const CoverTiming& chosen = decision.chosen.timings[*decision.chosen.index];
  report.predicted_seconds = chosen.predicted_seconds;
  report.correction_seconds = chosen.correction_seconds;
  report.isolated_seconds = chosen.predicted_seconds > 0 ? cover.plain_seconds : 0;
  report.overlap_seconds = chosen.predicted_seconds > 0 ? cover.overlap_seconds : 0;
  report.switches = cover.switches;
  const std::optional<double> ratio =
      known_in_situ_ratio(*context.database, context.choosing.source_key, context.choosing.context);
  if (!ratio || report.isolated_seconds <= 0) return;
  report.in_situ_ratio = *ratio;
  report.in_situ_seconds =
      Correction().predict(*ratio * (cover.plain_seconds - cover.overlap_seconds), cover.switches);
}

void report_best_single_backend(CompileReport& report) {
  for (const ReportedPlan& timed : report.covers)
    if (timed.single_backend && timed.measured &&
        (report.best_single_backend.empty() ||
         timed.measured->median < report.best_single_seconds)) {
      report.best_single_backend = timed.name;
      report.best_single_seconds = timed.measured->median;
    }
}

}  // namespace

Result<CompileReport> report_decision(const Candidates& candidates, const Decision& decision,
                                      CompileContext& context) {
  const CoverSearch& found = decision.found;
  CompileReport report;
  for (const PartitionSpecPtr& spec : candidates.specs)
    report.targets.push_back(spec->target.to_string());
  report.processor = context.processor;
  report.candidates = candidates.found.size();
  report.truncated = count_truncated(candidates.found);
  report.pruned = found.pruned;
  report.functions = found.functions;
  report.cache_state = context.cache;
  report.light = decision.light;
  report.lower_bound_seconds = found.lower_bound_seconds;
  report.exact = found.exact;
  report.searches = found.counts;
  if (!decision.light) report.gap = found.gap();
  report_covers(*candidates.graph, found, decision.chosen, report);
  report_prediction(decision, context, report);
  report_best_single_backend(report);
  report_graph(*candidates.graph, found.candidates, report);
  report_chosen(*candidates.graph, found.candidates, decision.cover(), decision.chosen.lowered,
                report);
  for (ReportedConversion& reported : report.conversions)
    reported.cost = TRY(context.conversion(reported.type, reported.from, reported.to)).cost;
  report.partitioned = TRY(partitioned_by(decision.cover(), found.candidates, candidates));
  report.estimates = context.costs.store().counts;
  report.usual_cores = context.costs.store().usual();
  if (const double memory = context.costs.store().usual().memory; memory > 0)
    report.memory_bytes_per_second = 1 / memory;
  return report;
}

Result<Module> partitioned_by(const NamedCover& cover, const std::vector<CostedCandidate>& costed,
                              const Candidates& candidates) {
  std::vector<KernelToWrite> kernels;
  for (const Cover::Kernel& kernel : cover.kernels) {
    const CandidatePartition& partition = costed[kernel.candidate].partition;
    kernels.push_back({&partition, stated_kernel(partition.spec->target,
                                                 row_of(kernel, costed).variant.to_string())});
  }
  std::vector<ConversionStatement> conversions;
  for (const ChosenConversion& change : cover.conversions)
    conversions.push_back(
        {candidates.graph->node(change.tensor.node).expr->type().leaves().at(change.tensor.leaf),
         change.from, change.to});
  WriteOptions options;
  options.form = KernelForm::kInline;
  options.attrs = stated_conversions(conversions);
  return TRY(write_kernels(*candidates.graph, kernels, candidates.module, options)).module;
}

void warn_of_silent_outputs(const Decision& decision, CompileContext& context) {
  const std::optional<CoverCheck> check = context.checks.known(decision.cover());
  if (!check) return;
  for (const auto& [output, reason] : check->silent)
    log::warn(
        "output '{}' is {} on all inputs that were tried: that it equals the reference's proves "
        "nothing",
        output, reason);
}

}  // namespace collage
