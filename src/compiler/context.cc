#include "compiler/context.h"

#include <sys/stat.h>

#include <algorithm>

#include "backend/offer.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/no_exceptions.h"
#include "base/processor.h"
#include "choose/light_cover.h"
#include "compiler/compile_control.h"
#include "compiler/plan_text.h"
#include "compiler/worker_command.h"
#include "cost/analytic.h"
#include "ir/text_printer.h"
#include "measure/noise_gate.h"
#include "partition/stated_kernels.h"
#include "partition/stated_places.h"
#include "tensor_program/external_call.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

Result<std::unique_ptr<CostDatabase>> open_database(const std::filesystem::path& given,
                                                    std::string& kernel_cache) {
  Result<std::filesystem::path> folder = cache_folder();
  if (folder) {
    kernel_cache = (*folder / "kernels").string();
    ::mkdir(kernel_cache.c_str(), 0700);  // where it cannot be made, kernels are not kept
  }
  if (!given.empty()) return CostDatabase::open_at(given.string());
  if (folder) return CostDatabase::open(*folder / "costs.db");
  log::warn("{}; costs are kept in memory for this run only", folder.status().message());
  return CostDatabase::in_memory();
}

Result<std::shared_ptr<const Machine>> machine_of(CostDatabase& database,
                                                  const ProgramOptions& options) {
  database.believe_foreign(true);
  Machine machine = TRY(find_machine(database, options.for_fingerprint));
  if (options.threads > 0 && options.threads != machine.threads)
    return usage_error("{} threads: what is known of {} is of {}", options.threads,
                       machine.fingerprint, machine.threads);
  return std::make_shared<const Machine>(std::move(machine));
}

// Places that the search alone knows how to meet.
bool has_scopes(const Candidates& candidates) {
  return candidates.graph->stated_places().state_scopes();
}

bool measures_nothing(const Candidates& candidates, const ProgramOptions& options) {
  const bool determined =
      is_determined(candidates.specs) || candidates.graph->stated_kernels().are_complete();
  return determined && !options.always_measure && options.cost_model == nullptr &&
         options.effort != Effort::kMax && options.max_error == 0 && !has_scopes(candidates);
}

bool asks_for_measuring(const ProgramOptions& options) {
  return options.frozen_costs || options.always_measure || options.cost_model != nullptr ||
         options.max_error > 0 || options.effort == Effort::kMax || !options.memory.empty();
}

CostOptions cost_options(const ProgramOptions& options, const CompileOptions& compile,
                         const std::vector<PartitionSpecPtr>& specs, CacheState cache, bool light) {
  CostOptions costs;
  costs.compile = compile;
  costs.effort = options.effort;
  costs.frozen = options.frozen_costs || light;
  costs.cache = cache;
  costs.model = options.cost_model.get();
  costs.pace = options.pace.get();
  costs.probes = options.always_measure;
  for (const PartitionSpecPtr& spec : specs) costs.converters.insert(spec->target.kind);
  return costs;
}

// Where programs run that are checked: here, whatever machine they are for, if they can.
std::string checking_context(const CostStore& store, const CompileOptions& compile) {
  return lacking_features(compile.features).empty()
             ? CostKeys(compile.threads, CacheState::kWarm).program_context()
             : store.program_context();
}

ReferenceCheckOptions reference_options(const ProgramOptions& options,
                                        const std::vector<PartitionSpecPtr>& specs) {
  ReferenceCheckOptions reference;
  reference.given = options.check_inputs;
  reference.all_ranges = options.max_error > 0 || options.effort == Effort::kMax;
  if (options.strict_accuracy) {
    reference.rounding = {};
    return reference;
  }
  // What kernels of these targets round by default: factors as two bfloat16 numbers.
  for (const PartitionSpecPtr& spec : specs)
    if (const Backend* backend = find_backend(spec->target.kind))
      for (const KernelRow& row : backend->traits().kernels)
        if (row.rounding.limit() == RoundingLimit::kDefault)
          reference.rounding.factors = std::max(reference.rounding.factors, row.rounding.factors);
  return reference;
}

std::vector<std::string> names_of(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return names;
}

}  // namespace

Result<ProgramOptions> completed(const ProgramOptions& options) {
  ProgramOptions complete = options;
  if (options.for_fingerprint.empty()) return complete;
  std::string no_kernels;
  const auto database = TRY(open_database(options.database, no_kernels));
  const auto machine = TRY(machine_of(*database, options));
  complete.frozen_costs = complete.always_measure = true;  // one toolchain is no exception
  complete.budget_seconds.reset();
  if (complete.targets.empty() && complete.devices.empty() && complete.config.empty())
    complete.targets = machine->targets;
  return complete;
}

Result<std::shared_ptr<Kernel>> KernelCache::compile(const Function& function,
                                                     const CandidatePartition& partition,
                                                     const Variant& variant,
                                                     const CompileOptions& options) {
  std::weak_ptr<Kernel>& known = kernels_[kernel_text(partition, variant)];
  if (std::shared_ptr<Kernel> kernel = known.lock()) return kernel;
  const Target& target = partition.spec->target;
  std::shared_ptr<Kernel> kernel;
  if (tensor_program::runs_plans(function)) {
    kernel = TRY(compile_control(function, options_, options.threads, progress_));
    kept_.push_back(kernel);
  } else {
    kernel = TRY(without_exceptions([&] {
      return compile_kernel(*find_backend(target.kind), function, variant, target, options);
    }));
  }
  known = kernel;
  return kernel;
}

Result<std::unique_ptr<CompileContext>> CompileContext::open(const Model& model,
                                                             const ProgramOptions& options,
                                                             const Candidates& candidates,
                                                             Progress* progress) {
  CompileOptions compile;
  compile.threads = ThreadTeam(options.threads).size();
  std::unique_ptr<CostDatabase> database =
      TRY(open_database(options.database, compile.cache_folder));
  std::shared_ptr<const Machine> machine;
  if (!options.for_fingerprint.empty()) {
    machine = TRY(machine_of(*database, options));
    compile.threads = machine->threads;
    if (machine->features != processor_features()) compile.features = machine->features;
  }
  Opened opened{std::move(compile), std::move(database), TRY(worker_command(options.worker)),
                model.impl().is_part ? DumpFolder() : TRY(DumpFolder::open()), std::move(machine)};
  std::unique_ptr<CompileContext> context(
      new CompileContext(model, options, candidates, progress, std::move(opened)));
  TRY(context->dump_module("graph", Module(context->graph.function())));
  TRY(context->dump("candidates", candidates));
  return context;
}

CompileContext::CompileContext(const Model& model, const ProgramOptions& program_options,
                               const Candidates& candidates, Progress* watcher, Opened opened)
    : options(program_options),
      progress(watcher),
      graph(*candidates.graph),
      light(measures_nothing(candidates, options)),
      answers_first(!light && options.budget_seconds && !asks_for_measuring(options) &&
                    !has_scopes(candidates)),
      compile(std::move(opened.compile)),
      processor(opened.machine ? opened.machine->processor : processor_name()),
      database(std::move(opened.database)),
      cache(cache_state(graph.function(), compile.threads)),
      costs(*database,
            [&] {
              CostOptions costs = cost_options(options, compile, candidates.specs, cache, light);
              costs.worker_command = std::move(opened.worker);
              costs.machine = std::move(opened.machine);
              return costs;
            }()),
      reference(graph.function(), reference_options(options, candidates.specs)),
      checks(reference, *database,
             CheckedModel{sha256_hex(canonical_text(graph.function())),
                          checking_context(costs.store(), compile), graph.function(),
                          names_of(model.outputs())}),
      choosing(choose_options(model)),
      kernels(options, progress),
      dumps_(std::move(opened.dumps)) {
  gate.allow(seconds_for_quiet(options.effort));
  choosing.memory_weight = candidates.memory_weight;
  lowering_.compile = compile;
  lowering_.input_names = names_of(model.inputs());
  lowering_.output_names = names_of(model.outputs());
  lowering_.choose_conversion = [this](const TensorType& type, const Encoding& from,
                                       const Encoding& to) -> Result<ConversionChoice> {
    const ConversionRow row = TRY(conversion(type, from, to));
    if (row.backend.empty())
      return internal_error("no conversion from {} to {}", from.to_string(), to.to_string());
    const Measured* m = measured(row.cost);
    return ConversionChoice{
        row.backend,
        m != nullptr ? m->seconds() : analytic_seconds(0, static_cast<double>(type.bytes()))};
  };
  lowering_.compile_kernel = [this](const Function& function, const CandidatePartition& partition,
                                    const Variant& variant) {
    return kernels.compile(function, partition, variant, compile);
  };
}

ChooseOptions CompileContext::choose_options(const Model& model) {
  ChooseOptions result;
  result.threads = compile.threads;
  result.frozen = options.frozen_costs;
  result.lacking = lacking_features(compile.features);
  result.effort = options.effort;
  if (light) result.timing = TimingEffort::kNone;
  result.source_key = sha256_hex(canonical_text(model.impl().module.main()));
  result.model_key = sha256_hex(canonical_text(graph.function()));
  // What programs took says nothing of predictions that rest on other costs.
  result.context =
      costs.store().program_context() + (options.cost_model ? "\ncosts of the user's" : "");
  result.constant_bytes = constant_bytes(graph.function());
  result.max_error = options.max_error;
  const DeclaredDevices devices = parse_devices_flag(options.devices).value();  // checked before
  result.memory_limits = parse_memory_limits(options.memory, devices).value();
  result.gate = &gate;
  result.pace = options.pace.get();
  return result;
}

Result<LoweredPlan> CompileContext::lower_cover(const NamedCover& cover,
                                                const std::vector<CostedCandidate>& candidates) {
  return lower(problem_of(cover, graph, candidates), cover, lowering_);
}

ChooseContext CompileContext::choosing_among(const std::vector<CostedCandidate>& candidates) {
  return {[this, &candidates](const NamedCover& cover) { return lower_cover(cover, candidates); },
          checks, *database, choosing, progress};
}

Result<ConversionRow> CompileContext::conversion(const TensorType& type, const Encoding& from,
                                                 const Encoding& to) {
  return tries ? costs.tried_conversion(type, from, to) : costs.conversion_cost(type, from, to);
}

Status CompileContext::dump_module(const std::string& stage, const Module& module) {
  if (!dumps_.wants(stage)) return {};
  PrintOptions as_text;
  as_text.constants = PrintOptions::Constants::kShapeOnly;
  return write_dump(stage + ".relay",
                    to_text(TRY(tensor_program::named_programs(module)), as_text));
}

Status CompileContext::dump_plan(const Plan& plan) {
  return dumps_.wants("plan") ? write_dump("plan.txt", to_text(plan)) : Status();
}

Status CompileContext::write_dump(const std::string& name, const std::string& text) {
  return write_file_atomically(dumps_.path(fmt::format("stage_{:02}_{}", dumped_++, name)), text);
}

void CompileContext::end_phase(const std::string& phase) {
  const double judged = reference.seconds();
  const double checking = judged - checked_seconds_;
  checked_seconds_ = judged;
  phase_seconds["checking"] += checking;
  phase_seconds[phase] += std::max(0.0, phase_.restart() - checking);
}

}  // namespace collage
