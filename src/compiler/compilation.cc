#include "compiler/compilation.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include "backend/compile_kernel.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/no_exceptions.h"
#include "compiler/describe_cover.h"
#include "compiler/in_situ_ratio.h"
#include "compiler/light_cover.h"
#include "compiler/lowered_costs.h"
#include "compiler/merged_cover.h"
#include "compiler/precision.h"
#include "compiler/prediction.h"
#include "compiler/refine_cover.h"
#include "compiler/second_look.h"
#include "compiler/worker_command.h"
#include "cost/quiet.h"
#include "ir/text_printer.h"
#include "partition/prune.h"
#include "partition/rewrite.h"

namespace collage {

namespace {

std::unique_ptr<CostDatabase> open_database(const std::filesystem::path& given,
                                            std::string& kernel_cache) {
  Result<std::filesystem::path> folder = cache_folder();
  if (folder) {
    kernel_cache = (*folder / "kernels").string();
    ::mkdir(kernel_cache.c_str(), 0700);  // where it cannot be made, kernels are not kept
  }
  if (!given.empty()) return CostDatabase::open(given);
  if (folder) return CostDatabase::open(*folder / "costs.db");
  log::warn("{}; costs are kept in memory for this run only", folder.status().message());
  return CostDatabase::in_memory();
}

bool is_broken_fusion(const CostedCandidate& candidate) {
  return candidate.costs != nullptr && !candidate.has_cost() &&
         fusion_never_loses(candidate.partition);
}

}  // namespace

Compilation::Compilation(const Model& model, const ProgramOptions& options, Progress* progress,
                         CompileReport& report)
    : model_(model),
      options_(options),
      progress_(progress),
      report_(report),
      demands_{options.strict_accuracy, options.deterministic} {}

void Compilation::end_phase(const std::string& phase) {
  const double judged = judge_ ? judge_->seconds() : 0;
  const double checking = judged - checked_seconds_;
  checked_seconds_ = judged;
  if (judge_) report_.phase_seconds["checking"] += checking;
  report_.phase_seconds[phase] += std::max(0.0, watch_.restart() - checking);
}

Status Compilation::gather() {
  constraints_ = TRY(TargetConstraints::parse(options_.exclude, options_.pin));
  std::optional<PartitionConfig> config;
  if (!options_.config.empty()) {
    config = TRY(read_config(options_.config));
    incompatible_ = config->incompatible;
  }
  specs_ = config ? TRY(configured_targets(*config, constraints_))
                  : TRY(select_targets(options_.targets, constraints_, options_.max_error > 0));
  compatible_ = compatible_targets(specs_, incompatible_);
  for (const auto& spec : specs_) report_.targets.push_back(spec->target.to_string());
  module_ = TRY(rewritten_for(specs_, model_.impl().module));
  graph_.emplace(untangle_tuples(module_.main()));
  found_ = gather_candidates(*graph_, specs_, constraints_);
  report_.candidates = found_.size();
  light_ = is_determined(specs_) && !options_.always_measure && options_.effort != Effort::kMax &&
           options_.max_error == 0;
  end_phase("candidates");
  return {};
}

Status Compilation::open_costs() {
  compile_.threads = ThreadTeam(options_.threads).size();
  database_ = open_database(options_.database, compile_.cache_folder);
  CostOptions costs;
  costs.compile = compile_;
  costs.effort = options_.effort;
  costs.patience = options_.patience;
  Quiet::here().allow(options_.patience);
  costs.frozen = options_.frozen_costs || light_;
  report_.cache_state = costs.cache = cache_state(graph_->function(), compile_.threads);
  costs.worker_command = TRY(worker_command(options_.worker));
  costs_.emplace(*database_, costs);

  lowering_.compile = compile_;
  for (const TensorInfo& info : model_.inputs()) lowering_.input_names.push_back(info.name);
  for (const TensorInfo& info : model_.outputs()) lowering_.output_names.push_back(info.name);
  lowering_.choose_conversion = [this](const TensorType& type, const Encoding& from,
                                       const Encoding& to) {
    return choose_conversion(type, from, to);
  };
  lowering_.compile_kernel = [this](const Function& function, const KernelChoice& choice) {
    return compile_kernel(function, choice);
  };

  choose_.threads = compile_.threads;
  choose_.frozen = options_.frozen_costs;
  choose_.untimed = light_;
  choose_.source_key = sha256_hex(canonical_text(model_.impl().module.main()));
  choose_.model_key = sha256_hex(canonical_text(graph_->function()));
  choose_.context = costs_->program_context();
  choose_.constant_bytes = constant_bytes(graph_->function());
  choose_.max_error = options_.max_error;
  JudgeOptions judge;
  judge.given = options_.check_inputs;
  judge.all_ranges = options_.max_error > 0 || options_.effort == Effort::kMax;
  judge_.emplace(graph_->function(), std::move(judge));
  checks_.emplace(
      *judge_, *database_,
      CheckedModel{choose_.model_key, choose_.context, graph_->function(), lowering_.output_names});
  return {};
}

Result<std::shared_ptr<Kernel>> Compilation::compile_kernel(const Function& function,
                                                            const KernelChoice& choice) {
  std::weak_ptr<Kernel>& known = kernels_[choice.sub_graph.inside().to_string() +
                                          choice.target.to_string() + choice.variant.to_string()];
  if (std::shared_ptr<Kernel> kernel = known.lock()) return kernel;
  std::shared_ptr<Kernel> kernel = TRY(without_exceptions([&] {
    return collage::compile_kernel(*find_backend(choice.target.kind), function, choice.variant,
                                   choice.target, compile_);
  }));
  known = kernel;
  return kernel;
}

Result<MeasuredCosts::Conversion> Compilation::conversion(const TensorType& type,
                                                          const Encoding& from,
                                                          const Encoding& to) {
  return light_ ? costs_->tried_conversion(type, from, to)
                : costs_->conversion_cost(type, from, to);
}

Result<ConversionChoice> Compilation::choose_conversion(const TensorType& type,
                                                        const Encoding& from, const Encoding& to) {
  MeasuredCosts::Conversion choice = TRY(conversion(type, from, to));
  if (choice.backend.empty())
    return internal_error("no conversion from {} to {}", from.to_string(), to.to_string());
  const Measured* m = measured(choice.cost);
  return ConversionChoice{
      choice.backend,
      m != nullptr ? m->seconds() : analytic_seconds(0, static_cast<double>(type.bytes()))};
}

Result<CoverSearch> Compilation::search_by_costs(std::vector<CandidatePartition> found) {
  std::vector<CandidatePartition> pruned;
  found = prune_dominated(*graph_, std::move(found), pruned);
  candidates_ =
      TRY(cost_candidates(*graph_, std::move(found), *costs_, progress_, &report_.functions));
  leave_out(candidates_, demands_);
  if (std::any_of(candidates_.begin(), candidates_.end(), is_broken_fusion)) {
    // What should stand for smaller kernels does not work: they are needed after all.
    size_t functions = 0;
    std::vector<CostedCandidate> smaller =
        TRY(cost_candidates(*graph_, std::move(pruned), *costs_, progress_, &functions));
    leave_out(smaller, demands_);
    std::move(smaller.begin(), smaller.end(), std::back_inserter(candidates_));
    report_.functions += functions;
    pruned.clear();
  }
  report_.pruned = pruned.size();
  end_phase("costs");
  return search_costed();
}

Result<CoverSearch> Compilation::search_costed() {
  CoverSearch search = TRY(with_merged_cover(
      *graph_, TRY(find_compatible_covers(*graph_, candidates_, *costs_, specs_, compatible_)),
      *costs_, demands_));
  end_phase("search");
  report_.phase_seconds["search only"] = search.search_seconds;
  return search;
}

Result<std::vector<TuningTask>> Compilation::extract_tasks() {
  std::vector<CandidatePartition> pruned;
  TaskExtraction extraction(*graph_);
  for (const CandidatePartition& candidate : prune_dominated(*graph_, found_, pruned))
    TRY(extraction.add(candidate));
  std::vector<TuningTask> tasks;
  for (TuningTask& task : extraction.tasks()) {
    task.unknown = costs_->count_unknown(task.text, task.targets);
    if (!task.targets.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

Status Compilation::search() {
  // With one toolchain too the search decides where it has all costs, from tuning say.
  Result<CoverSearch> searched = search_by_costs(light_ ? found_ : std::move(found_));
  if (light_ && searched.status().code() == ErrorCode::kFrozenCosts) {
    TRY(cover_lightly());
  } else {
    search_ = TRY(std::move(searched));
    for (int look = 0; options_.effort != Effort::kFast && look < kMostLooks; ++look)
      if (!TRY(look_again({search_.covers[0]}, 1))) break;
  }
  return {};
}

Result<bool> Compilation::look_again(const std::vector<NamedCover>& covers, int most_looks) {
  bool changed = false;
  for (const NamedCover& cover : covers)
    changed |= TRY(collage::look_again(cover, search_.candidates, candidates_, *costs_,
                                       MeasuredCosts::Precision::kFull, progress_, most_looks));
  end_phase("costs");
  if (changed) search_ = TRY(search_costed());
  return changed;
}

Status Compilation::cover_lightly() {
  LightCover lightly =
      TRY(find_light_cover(*graph_, found_, *costs_,
                           {compile_, demands_, lowering_.compile_kernel, culprits_}, progress_));
  tried_ = std::move(lightly.kernels);
  search_ = CoverSearch{
      std::move(lightly.candidates), {std::move(lightly.cover)}, 0, false, lightly.states, 0};
  report_.light = true;
  end_phase("search");
  return {};
}

Result<CoverPrediction> Compilation::predict() {
  if (options_.max_error > 0)
    return unsupported("which kernels may be lowered shows only when the model is run");
  Result<CoverSearch> searched = search_by_costs(std::move(found_));
  if (light_ && searched.status().code() == ErrorCode::kFrozenCosts)
    return unsupported("one toolchain is left: its kernels are not measured, so not predicted");
  search_ = TRY(std::move(searched));
  return predict_cover(search_.covers[0], search_.candidates, *checks_, *database_, choose_);
}

Result<LoweredPlan> Compilation::lower_cover(const NamedCover& cover) {
  std::vector<KernelChoice> choices;
  for (const CoverKernel& kernel : cover.kernels)
    choices.push_back(
        kernel_choice(search_.candidates[kernel.candidate].partition, kernel.row().variant));
  return lower(*graph_, choices, cover.conversions, lowering_);
}

Result<Module> Compilation::partitioned(const NamedCover& cover) const {
  std::vector<const CandidatePartition*> partitions;
  for (const CoverKernel& kernel : cover.kernels)
    partitions.push_back(&search_.candidates[kernel.candidate].partition);
  return TRY(partition_module(*graph_, partitions, ConstantsInside::kAll, module_)).module;
}

Result<Module> Compilation::apply_history() {
  return partitioned(search_.covers[fastest_known(search_.covers, search_.candidates, *checks_,
                                                  *database_, choose_)]);
}

Status Compilation::choose() {
  constexpr double kLeastSeconds = 4, kOfCompiling = 0.25;
  judge_->allow(std::max(kLeastSeconds, kOfCompiling * whole_.seconds()));
  TRY(report_.light ? choose_lightly() : choose_right());
  for (int look = 0; !light_ && options_.effort != Effort::kFast && look < kMostLooks; ++look) {
    std::vector<NamedCover> disturbed;
    for (size_t c = 0; c < search_.covers.size(); ++c)
      if (looks_disturbed(chosen_.timed[c])) disturbed.push_back(search_.covers[c]);
    end_phase("covers");
    if (!TRY(look_again(disturbed, 2 + look))) break;
    TRY(choose_right());
  }
  end_phase("covers");
  TRY(find_in_situ_ratio());
  if (options_.search == SearchMethod::kEvolutionary && !light_) TRY(refine());
  if (options_.max_error > 0 && !interrupted()) TRY(lower_precision());
  warn_of_silent_outputs();
  return {};
}

Status Compilation::find_in_situ_ratio() {
  const NamedCover& cover = search_.covers[chosen_.index];
  if (light_ || options_.frozen_costs || interrupted() || cover.plain_seconds <= 0) return {};
  if (known_in_situ_ratio(*database_, choose_.source_key, choose_.context)) return {};
  const std::span<const Tensor> inputs = TRY(judge_->timing_inputs());
  Executor executor = TRY(Executor::create(chosen_.lowered.plan, compile_.threads));
  if (progress_ != nullptr) progress_->update("timing kernels in their place", 0, 1, 0, 0);
  const Status status = measure_in_situ_ratio(
      cover, executor, inputs,
      {compile_.threads, report_.cache_state, options_.effort, options_.patience},
      choose_.source_key, choose_.context, *database_);
  if (progress_ != nullptr) progress_->finish("timing kernels in their place");
  if (!status.ok())
    log::warn("what its kernels take inside the model was not measured: {}", status.to_string());
  end_phase("in situ");
  return {};
}

Status Compilation::refine() {
  if (!incompatible_.empty())
    return usage_error("--search evolutionary knows no targets that must not meet");
  chosen_ = TRY(refine_cover(
      *graph_, *costs_, options_.effort,
      [this](const std::vector<NamedCover>& covers) { return choose_among(covers); },
      std::move(chosen_), search_));
  end_phase("refinement");
  return {};
}

Status Compilation::lower_precision() {
  search_.candidates = TRY(with_lowered_variants(*graph_, search_.candidates, *costs_, progress_));
  leave_out(search_.candidates, demands_);
  end_phase("lowered costs");
  chosen_ = TRY(choose_within_budget(
      std::move(chosen_), search_,
      [this](const std::vector<CostedCandidate>& priced) {
        return find_compatible_covers(*graph_, priced, *costs_, specs_, compatible_);
      },
      [this](const NamedCover& cover, std::vector<CostedCandidate>& candidates) -> Result<bool> {
        if (options_.effort == Effort::kFast) return false;
        return collage::look_again(cover, with_costs_of({cover}, candidates), candidates, *costs_,
                                   MeasuredCosts::Precision::kLowered, progress_);
      },
      [this](const NamedCover& cover) { return lower_cover(cover); }, *checks_, *database_, choose_,
      progress_));
  end_phase("lowered covers");
  return {};
}

Status Compilation::describe() {
  report_.lower_bound_seconds = search_.lower_bound_seconds;
  report_.exact = search_.exact;
  report_.search_states = search_.states;
  if (!report_.light) report_.gap = search_.gap();
  const NamedCover& cover = search_.covers[chosen_.index];
  report_.covers = chosen_.timed;
  const TimedCover& best = report_.covers[chosen_.index];
  report_.predicted_seconds = best.predicted_seconds;
  report_.correction_seconds = best.correction_seconds;
  report_.isolated_seconds = best.predicted_seconds > 0 ? cover.plain_seconds : 0;
  const std::optional<double> ratio =
      known_in_situ_ratio(*database_, choose_.source_key, choose_.context);
  if (ratio && report_.isolated_seconds > 0) {
    report_.in_situ_ratio = *ratio;
    report_.in_situ_seconds = Correction().predict({*ratio * cover.plain_seconds, cover.switches});
  }
  report_.switches = cover.switches;
  for (const TimedCover& timed : report_.covers)
    if (timed.single_backend && timed.measured &&
        (report_.best_single_backend.empty() ||
         timed.measured->median < report_.best_single_seconds)) {
      report_.best_single_backend = timed.name;
      report_.best_single_seconds = timed.measured->median;
    }
  report_graph(*graph_, search_.candidates, report_);
  report_chosen(*graph_, search_.candidates, cover, chosen_.lowered, report_);
  for (ReportedConversion& reported : report_.conversions)
    reported.cost = TRY(conversion(reported.type, reported.from, reported.to)).cost;
  report_single_backends(*graph_, search_.candidates, search_.covers, report_);
  report_.partitioned = TRY(partitioned(cover));
  report_.estimates = costs_->counts();
  if (const double memory = costs_->usual().memory; memory > 0)
    report_.memory_bytes_per_second = 1 / memory;
  return {};
}

Result<Executor> Compilation::make_executor() {
  Result<Executor> executor = Executor::create(chosen_.lowered.plan, compile_.threads);
  end_phase("report");
  return executor;
}

}  // namespace collage
