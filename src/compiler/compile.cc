#include "compiler/compile.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "backend/compile_kernel.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "compiler/backends.h"
#include "compiler/describe_cover.h"
#include "compiler/light_cover.h"
#include "compiler/merged_cover.h"
#include "compiler/precision.h"
#include "compiler/refine_cover.h"
#include "compiler/targets.h"
#include "compiler/worker_command.h"
#include "ir/text_printer.h"
#include "partition/prune.h"
#include "partition/rewrite.h"

namespace collage {

namespace {

// Times the phases of a compilation.
class Phases {
 public:
  explicit Phases(std::map<std::string, double>& seconds) : seconds_(seconds) {}
  void end(const std::string& phase) { seconds_[phase] += watch_.restart(); }

 private:
  std::map<std::string, double>& seconds_;
  Stopwatch watch_;
};

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

// Kernels of plans that are alive at the same time are shared; those of dropped plans go with them.
class KernelCache {
 public:
  explicit KernelCache(CompileOptions options) : options_(std::move(options)) {}
  Result<std::shared_ptr<Kernel>> compile(const Function& function, const KernelChoice& choice) {
    std::weak_ptr<Kernel>& known = kernels_[choice.sub_graph.inside().to_string() +
                                            choice.target.to_string() + choice.variant.to_string()];
    if (std::shared_ptr<Kernel> kernel = known.lock()) return kernel;
    std::shared_ptr<Kernel> kernel = TRY(compile_kernel(*find_backend(choice.target.kind), function,
                                                        choice.variant, choice.target, options_));
    known = kernel;
    return kernel;
  }

 private:
  CompileOptions options_;
  std::map<std::string, std::weak_ptr<Kernel>> kernels_;
};

VariantDemands demands_of(const ProgramOptions& options) {
  return {options.strict_accuracy, options.deterministic};
}

bool is_broken_fusion(const CostedCandidate& candidate) {
  return candidate.costs != nullptr && !candidate.has_cost() &&
         fusion_never_loses(candidate.partition);
}

// Costs of all candidates, and the best covers by them.
Result<CoverSearch> search_by_costs(const DataflowGraph& graph,
                                    std::vector<CandidatePartition> found, MeasuredCosts& costs,
                                    const ProgramOptions& options,
                                    const std::vector<PartitionSpecPtr>& specs,
                                    const std::vector<std::vector<size_t>>& compatible,
                                    std::vector<CostedCandidate>& candidates, CompileReport& report,
                                    Phases& phases, Progress* progress) {
  std::vector<CandidatePartition> pruned;
  found = prune_dominated(graph, std::move(found), pruned);
  candidates = TRY(cost_candidates(graph, std::move(found), costs, progress, &report.functions));
  leave_out(candidates, demands_of(options));
  if (std::any_of(candidates.begin(), candidates.end(), is_broken_fusion)) {
    // What should stand for smaller kernels does not work: they are needed after all.
    size_t functions = 0;
    std::vector<CostedCandidate> smaller =
        TRY(cost_candidates(graph, std::move(pruned), costs, progress, &functions));
    leave_out(smaller, demands_of(options));
    std::move(smaller.begin(), smaller.end(), std::back_inserter(candidates));
    report.functions += functions;
    pruned.clear();
  }
  report.pruned = pruned.size();
  phases.end("costs");
  CoverSearch search = TRY(find_compatible_covers(graph, candidates, costs, specs, compatible));
  TRY(add_merged_cover(graph, candidates, costs, demands_of(options), search));
  phases.end("search");
  report.phase_seconds["search only"] = search.search_seconds;
  return search;
}

// With `predict_only` the program is not made, and its report says no more than the prediction.
Result<Program> compile_model(const Model& model, const ProgramOptions& options, Progress* progress,
                              bool predict_only) {
  register_all();
  auto impl = std::make_unique<internal::ProgramImpl>();
  impl->inputs = model.inputs();
  impl->outputs = model.outputs();
  CompileReport& report = impl->report;
  Phases phases(report.phase_seconds);

  TargetConstraints constraints = TRY(TargetConstraints::parse(options.exclude, options.pin));
  std::optional<PartitionConfig> config;
  if (!options.config.empty()) config = TRY(read_config(options.config));
  std::vector<PartitionSpecPtr> specs = config ? TRY(configured_targets(*config, constraints))
                                               : TRY(select_targets(options.targets, constraints));
  for (const auto& spec : specs) report.targets.push_back(spec->target.to_string());
  Module module = TRY(rewritten_for(specs, model.impl().module));
  DataflowGraph graph(untangle_tuples(module.main()));
  std::vector<CandidatePartition> found = gather_candidates(graph, specs, constraints);
  report.candidates = found.size();
  phases.end("candidates");

  CostOptions cost_options;
  cost_options.compile.threads = ThreadTeam(options.threads).size();
  cost_options.effort = options.effort;
  // Where the toolchain is determined nothing is measured, unless that is asked for.
  const bool light = is_determined(specs) && !options.always_measure &&
                     options.effort != Effort::kMax && options.max_error == 0;
  cost_options.frozen = options.frozen_costs || light;
  cost_options.cache = cache_state(graph.function(), cost_options.compile.threads);
  std::unique_ptr<CostDatabase> database =
      open_database(options.database, cost_options.compile.cache_folder);
  cost_options.worker_command = TRY(worker_command(options.worker));
  MeasuredCosts costs(*database, cost_options);
  KernelCache kernels(cost_options.compile);
  LoweringOptions lowering;
  lowering.compile = cost_options.compile;
  for (const TensorInfo& info : model.inputs()) lowering.input_names.push_back(info.name);
  for (const TensorInfo& info : model.outputs()) lowering.output_names.push_back(info.name);
  auto conversion_of = [&](const TensorType& type, const Encoding& from, const Encoding& to) {
    return light ? costs.tried_conversion(type, from, to) : costs.conversion_cost(type, from, to);
  };
  lowering.choose_conversion = [&](const TensorType& type, const Encoding& from,
                                   const Encoding& to) -> Result<ConversionChoice> {
    MeasuredCosts::Conversion conversion = TRY(conversion_of(type, from, to));
    if (conversion.backend.empty())
      return internal_error("no conversion from {} to {}", from.to_string(), to.to_string());
    const Measured* m = measured(conversion.cost);
    return ConversionChoice{
        conversion.backend,
        m != nullptr ? m->seconds() : analytic_seconds(0, static_cast<double>(type.bytes()))};
  };
  lowering.compile_kernel = [&](const Function& function, const KernelChoice& choice) {
    return kernels.compile(function, choice);
  };

  std::vector<std::pair<std::string, std::string>> incompatible;
  if (config) incompatible = config->incompatible;
  std::vector<CostedCandidate> candidates;
  std::vector<std::shared_ptr<Kernel>> compiled;  // of a light cover
  // With one toolchain too the search decides where it has all costs, from tuning say.
  Result<CoverSearch> searched = search_by_costs(
      graph, light ? found : std::move(found), costs, options, specs,
      compatible_targets(specs, incompatible), candidates, report, phases, progress);
  ChooseOptions choose;
  choose.threads = cost_options.compile.threads;
  choose.frozen = options.frozen_costs;
  choose.untimed = light;
  choose.model_key = sha256_hex(canonical_text(graph.function()));
  choose.context = costs.program_context();
  choose.constant_bytes = constant_bytes(graph.function());
  choose.cold_bytes = cost_options.cache == CacheState::kWarm ? 0 : choose.constant_bytes;
  if (predict_only) {
    if (options.max_error > 0)
      return unsupported("which kernels may be lowered shows only when the model is run");
    if (light && searched.status().code() == ErrorCode::kFrozenCosts)
      return unsupported("one toolchain is left: its kernels are not measured, so not predicted");
    report.predicted_seconds = predict_cover(TRY(std::move(searched)).covers[0], *database, choose);
    return Program(std::move(impl));
  }
  if (light && searched.status().code() == ErrorCode::kFrozenCosts) {
    LightCover lightly = TRY(find_light_cover(
        graph, std::move(found), costs,
        {cost_options.compile, demands_of(options), lowering.compile_kernel}, progress));
    candidates = std::move(lightly.candidates);
    compiled = std::move(lightly.kernels);
    searched = CoverSearch{{std::move(lightly.cover)}, 0, false, lightly.states, 0};
    report.light = true;
    phases.end("search");
  }
  CoverSearch search = TRY(std::move(searched));
  report.lower_bound_seconds = search.lower_bound_seconds;
  report.exact = search.exact;
  if (!report.light) report.gap = search.gap();
  report.search_states = search.states;
  Lower lower_cover = [&](const NamedCover& cover) -> Result<LoweredPlan> {
    std::vector<KernelChoice> choices;
    for (const CoverKernel& kernel : cover.kernels)
      choices.push_back(kernel_choice(candidates[kernel.candidate], kernel.variant));
    return lower(graph, choices, cover.conversions, lowering);
  };
  LazyJudge judge(graph.function());
  auto choose_among = [&](const std::vector<NamedCover>& covers) {
    return choose_cover(covers, candidates, lower_cover, judge, *database, choose, progress);
  };
  ChosenCover chosen = TRY(choose_among(search.covers));
  phases.end("covers");
  if (options.search == SearchMethod::kEvolutionary && !light) {
    if (!incompatible.empty())
      return usage_error("--search evolutionary knows no targets that must not meet");
    chosen = TRY(refine_cover(graph, candidates, costs, options.effort, choose_among,
                              std::move(chosen), search.covers));
    phases.end("refinement");
  }
  if (options.max_error > 0 && !interrupted()) {
    candidates = TRY(with_lowered_variants(graph, candidates, costs, progress));
    leave_out(candidates, demands_of(options));
    phases.end("lowered costs");
    FindCovers find = [&](std::vector<CostedCandidate>& priced) {
      return find_compatible_covers(graph, priced, costs, specs,
                                    compatible_targets(specs, incompatible));
    };
    choose.max_error = options.max_error;
    choose.constants = constants_digest(graph.function());
    chosen = TRY(choose_within_budget(std::move(chosen), search.covers, candidates, find,
                                      lower_cover, judge, *database, choose, progress));
    phases.end("lowered covers");
  }

  const NamedCover& cover = search.covers[chosen.index];
  report.covers = std::move(chosen.timed);
  report.predicted_seconds = report.covers[chosen.index].predicted_seconds;
  report.correction_seconds = report.covers[chosen.index].correction_seconds;
  for (const TimedCover& timed : report.covers)
    if (timed.single_backend && timed.measured &&
        (report.best_single_backend.empty() ||
         timed.measured->median < report.best_single_seconds)) {
      report.best_single_backend = timed.name;
      report.best_single_seconds = timed.measured->median;
    }
  report_graph(graph, candidates, report);
  report_chosen(graph, candidates, cover, chosen.lowered, report);
  for (ReportedConversion& conversion : report.conversions)
    conversion.cost = TRY(conversion_of(conversion.type, conversion.from, conversion.to)).cost;
  report_single_backends(graph, candidates, search.covers, report);
  std::vector<const CandidatePartition*> partitions;
  for (const CoverKernel& kernel : cover.kernels)
    partitions.push_back(&candidates[kernel.candidate].partition);
  report.partitioned =
      TRY(partition_module(graph, partitions, ConstantsInside::kAll, module)).module;
  report.estimates = costs.counts();
  impl->executor = TRY(Executor::create(chosen.lowered.plan, choose.threads));
  phases.end("report");
  return Program(std::move(impl));
}

}  // namespace

Result<Program> compile_model(const Model& model, const ProgramOptions& options,
                              Progress* progress) {
  return compile_model(model, options, progress, false);
}

Result<double> predict_seconds(const Model& model, const ProgramOptions& options,
                               Progress* progress) {
  return TRY(compile_model(model, options, progress, true)).impl().report.predicted_seconds;
}

Result<Program> Program::compile(const Model& model, const ProgramOptions& options) {
  return compile_model(model, options);
}
Program::Program(std::unique_ptr<internal::ProgramImpl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;
const std::vector<TensorInfo>& Program::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& Program::outputs() const { return impl_->outputs; }

Status Program::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  outputs.resize(impl_->outputs.size());
  return impl_->executor->run(inputs, outputs);
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  TRY(run(inputs, outputs));
  return outputs;
}

}  // namespace collage
