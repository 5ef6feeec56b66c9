#include "measure/measure.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "backend/offer.h"
#include "ir/work.h"
#include "measure/compile_ahead.h"
#include "measure/fault.h"
#include "measure/guarded_call.h"
#include "measure/reference_cache.h"
#include "measure/staged_kernel.h"
#include "measure/timing.h"
#include "measure/timing_memory.h"
#include "measure/trial.h"

namespace collage {

namespace {

// A process that a kernel leaves behind would disturb all that is timed later.
bool has_children() {
  pid_t child;
  do {
    child = ::waitpid(-1, nullptr, WNOHANG);
  } while (child > 0);
  return child == 0;
}

Status check_buffers(const TimedKernel& timed, const TimingMemory& memory) {
  for (const TimedBuffer& buffer : timed.inputs) TRY(memory.check(buffer.data));
  for (const TimedBuffer& buffer : timed.outputs) TRY(memory.check(buffer.data));
  return memory.check(timed.workspace.data);
}

// As lowering will.
void place(TimedKernel& kernel, const InPlace& in_place) {
  const bool joins = in_place.joins();
  TimedBuffer& part = joins ? kernel.inputs[in_place.input] : kernel.outputs[in_place.output];
  const TimedBuffer& whole =
      joins ? kernel.outputs[in_place.output] : kernel.inputs[in_place.input];
  if (joins)
    std::memcpy(static_cast<uint8_t*>(whole.data) + in_place.offset, part.data, part.bytes);
  part.data = static_cast<uint8_t*>(whole.data) + in_place.offset;
}

// What was tried and is right, of one subject or of several: timed together, in turns.
class Survivors {
 public:
  // How they are timed is the same for all: `task` says it.
  Survivors(const MeasureTask& task, const MeasureHooks& hooks, NoiseGate& gate, ThreadTeam& team)
      : task_(task), hooks_(hooks), gate_(gate), team_(team) {
    gate.know(task.usual);
    gate.allow(seconds_for_quiet(task.effort));
  }

  // `row` receives the cost. Those of one subject are rivals.
  void add(std::string name, MeasuredVariant& row, const Subject& subject, Trial trial) {
    all_.push_back({std::move(name), &row, &subject, std::move(trial)});
  }

  Status time() {
    TimingMemory memory;
    std::vector<TimedKernel> timed;
    std::vector<std::string> names;
    std::map<const Subject*, size_t> subjects;
    for (Survivor& survivor : all_) {
      Trial& trial = survivor.trial;
      TimedKernel kernel;
      kernel.kernel = trial.kernel.get();
      kernel.rivals = subjects.try_emplace(survivor.subject, subjects.size()).first->second;
      for (size_t i = 0; i < trial.inputs.size(); ++i)
        kernel.inputs.push_back({TRY(memory.copy_of(trial.inputs[i], "input " + std::to_string(i))),
                                 trial.inputs[i]->bytes()});
      for (size_t i = 0; i < trial.outputs.size(); ++i) {
        size_t bytes = trial.outputs[i].bytes();
        kernel.outputs.push_back({TRY(memory.zeros(bytes, "output " + std::to_string(i))), bytes});
      }
      for (const InPlace& in_place : trial.kernel->in_place()) place(kernel, in_place);
      size_t bytes = trial.workspace.bytes();
      kernel.workspace = {TRY(memory.zeros(bytes, "the workspace")), bytes};
      if (auto* staged = dynamic_cast<StagedKernel*>(trial.kernel.get()))
        TRY(staged->hold(TimedArguments(kernel).args()));
      timed.push_back(std::move(kernel));
      names.push_back(survivor.name);
    }
    if (timed.empty()) return {};
    hooks_.timing(names);
    std::vector<Result<Block>> blocks = TRY(time_block(timed));
    for (size_t i = 0; i < all_.size(); ++i) {
      Survivor& survivor = all_[i];
      MeasuredVariant& row = *survivor.row;
      hooks_.begin(names[i]);
      Status status = blocks[i].status();
      Trial& trial = survivor.trial;
      if (auto* staged = dynamic_cast<StagedKernel*>(trial.kernel.get()); staged && status.ok())
        status = staged->release(TimedArguments(timed[i]).args());
      if (status.ok()) status = check_buffers(timed[i], memory);
      for (size_t o = 0; o < trial.outputs.size(); ++o)
        std::memcpy(trial.outputs[o].data(), timed[i].outputs[o].data, trial.outputs[o].bytes());
      if (status.ok()) status = check_after_timing(trial, row.variant, *survivor.subject);
      row.cost = status.ok() ? Cost(of_blocks({*blocks[i]})) : Cost(fault_of(status));
    }
    return {};
  }

  // How the results were measured.
  void describe(std::vector<TargetCosts>& results) const {
    for (TargetCosts& entry : results) {
      entry.effort = task_.effort;
      entry.conditions = conditions_;
      entry.conditions.usual = gate_.usual();
      entry.conditions.usual.memory = memory_;
    }
  }

 private:
  // A block of each.
  Result<std::vector<Result<Block>>> time_block(std::vector<TimedKernel>& timed) {
    TimingOptions options = TimingOptions::of(task_.effort);
    options.cache = task_.cache;
    options.running = hooks_.running;
    options.beats = hooks_.beats;
    look_at_memory();
    Watch watch(team_.size(), gate_.probes());
    std::vector<Result<Block>> blocks = TRY(time_kernels(timed, team_, options, gate_));
    conditions_ = watch.stop();
    for (Result<Block>& block : blocks)
      if (block) block->disturbed |= conditions_.disturbed;
    look_at_memory();
    return blocks;
  }

  // Before a block and after it: kernels that stream are held against the best rate that was seen.
  void look_at_memory() {
    if (task_.cache != CacheState::kStreaming) return;
    const double seen = seconds_per_memory_byte(team_);
    if (seen > 0 && (memory_ == 0 || seen < memory_)) memory_ = seen;
  }

  struct Survivor {
    std::string name;
    MeasuredVariant* row;
    const Subject* subject;
    Trial trial;
  };
  const MeasureTask& task_;
  const MeasureHooks& hooks_;
  NoiseGate& gate_;
  ThreadTeam& team_;
  std::vector<Survivor> all_;
  Conditions conditions_;  // the machine's while they were timed
  double memory_ = 0;      // seconds a byte, at the better look; 0: not seen
};

// Tries the variants of one subject, each alone.
class Measurement {
 public:
  Measurement(const MeasureTask& task, const MeasureHooks& hooks, Subject subject, ThreadTeam& team,
              Survivors& survivors)
      : task_(task),
        hooks_(hooks),
        subject_(std::move(subject)),
        team_(team),
        survivors_(survivors) {}
  Subject& subject() { return subject_; }

  // Fills row.cost when the variant is not to be tried or fails; `compile` makes its kernel, which
  // runs on that device.
  template <typename Compile>
  void try_variant(const std::string& target, const VirtualDevice& device, MeasuredVariant& row,
                   Compile&& compile) {
    std::string name = row.subject(target);
    if (task_.excludes(name)) {
      if (auto it = task_.skip.find(name); it != task_.skip.end()) row.cost = it->second;
      return;
    }
    hooks_.begin(name);
    if (task_.builds) {
      const auto kernel = guarded(hooks_, [&] { return compile(); });
      if (!kernel) row.cost = fault_of(kernel.status());
      return;
    }
    Result<Trial> trial = guarded(hooks_, [&]() -> Result<Trial> {
      TRY(subject_.check_fit(row.variant));
      std::shared_ptr<Kernel> kernel = TRY(StagedKernel::around(
          TRY(compile()), row.variant, subject_.inputs(), subject_.outputs(), device));
      return try_kernel(std::move(kernel), row.variant, subject_, team_);
    });
    if (has_children()) hooks_.give_up("left a child process behind");
    if (!trial) {
      row.cost = fault_of(trial.status());
      return;
    }
    row.repeatable = trial->repeatable;
    row.variant.loses_nan |= trial->loses_nan;
    row.variant.spreads_nan |= trial->spreads_nan;
    row.tried = true;
    if (row.variant.lowered()) row.error = trial->agreement.error;
    if (task_.times()) survivors_.add(std::move(name), row, subject_, std::move(trial).value());
  }

 private:
  const MeasureTask& task_;
  const MeasureHooks& hooks_;
  Subject subject_;
  ThreadTeam& team_;
  Survivors& survivors_;
};

// What is tried and not timed is used in programs that are checked as a whole, so it is judged
// quickly, and what the reference takes long for is not compared here too, nor what is as long as a
// program.
Result<Subject> subject_of(const MeasureTask& task) {
  constexpr double kMostFlops = 2e7;
  constexpr size_t kMostExpressions = 1000;
  const std::string& text = task.function()->text;
  if (task.builds)
    return Subject::unchecked(TRY(function_with_seeded_constants(text)), task.options);
  if (!task.times()) {
    Function function = TRY(function_with_seeded_constants(text));
    if (function_flops(function) > kMostFlops ||
        post_order(function->body).size() > kMostExpressions)
      return Subject::unchecked(std::move(function), task.options);
  }
  Subject subject = TRY(Subject::of_function(text, task.options));
  if (!task.times()) subject.judge_quickly();
  return subject;
}

// What each target offers for the function: variants of unknown cost, or why it refuses.
Result<std::vector<TargetCosts>> list_variants(const Function& function, const MeasureTask& task,
                                               const MeasureHooks& hooks) {
  const FunctionRequest& request = *task.function();
  std::vector<TargetCosts> results;
  for (const std::string& text : task.targets) {
    TargetCosts& entry = results.emplace_back();
    entry.target = text;
    if (auto it = task.skip.find(text); it != task.skip.end()) {
      entry.refusal = it->second.reason;
      entry.failure = it->second.failure;
      continue;
    }
    Target target = TRY(Target::parse(text));
    Backend* backend = find_backend(target.kind);
    if (backend == nullptr) {
      entry.refusal = "backend is not available";
      continue;
    }
    hooks.begin(text);
    const auto named = request.named.find(text);
    Result<std::vector<Variant>> variants = guarded(hooks, [&]() -> Result<std::vector<Variant>> {
      if (request.only_named) return std::vector<Variant>();
      return variants_to_cost(*backend, function, target, task.options);
    });
    if (!variants) {
      entry.refusal = variants.status().to_string();
      entry.failure = fault_of(variants.status()).failure;
      continue;
    }
    if (named != request.named.end())
      for (const Variant& variant : named->second)
        if (std::find(variants->begin(), variants->end(), variant) == variants->end())
          variants->push_back(variant);
    if (variants->empty()) entry.refusal = "no variants";
    for (Variant& variant : *variants) entry.variants.push_back({std::move(variant), Unknown{}});
  }
  return results;
}

// Of the variants that were listed, which are right, and why the others are not.
Status try_variants(Measurement& measurement, const MeasureTask& task, KernelsAhead& ahead,
                    std::vector<TargetCosts>& listed) {
  for (TargetCosts& entry : listed) {
    const Target target = TRY(Target::parse(entry.target));
    for (MeasuredVariant& row : entry.variants) {
      measurement.try_variant(
          entry.target, target.device, row, [&]() -> Result<std::unique_ptr<Kernel>> {
            if (auto kernel = ahead.take(row)) return std::move(*kernel);
            return compile_to_time(measurement.subject().function(), row.variant, target, task);
          });
      if (row.tried && !task.times()) break;
    }
  }
  return {};
}

// All of them, as far as they are to be tried.
Status add_all(const std::vector<TargetCosts>& listed, const Function& function,
               const MeasureTask& task, KernelsAhead& ahead) {
  for (const TargetCosts& entry : listed) {
    const Target target = TRY(Target::parse(entry.target));
    for (const MeasuredVariant& row : entry.variants)
      if (!task.excludes(row.subject(entry.target))) ahead.add(row, function, target, task);
  }
  return {};
}

}  // namespace

std::vector<Result<std::vector<TargetCosts>>> measure_functions(
    const std::vector<MeasureTask>& tasks, const MeasureHooks& hooks, NoiseGate& gate) {
  std::vector<Result<std::vector<TargetCosts>>> results;
  if (tasks.empty()) return results;
  ThreadTeam team(tasks[0].options.threads);
  const TeamScope scope(team.size());
  Survivors survivors(tasks[0], hooks, gate, team);
  std::vector<std::unique_ptr<Measurement>> measurements(tasks.size());  // none: only listed
  for (size_t i = 0; i < tasks.size(); ++i)
    results.push_back([&]() -> Result<std::vector<TargetCosts>> {
      hooks.begin("preparing");
      const FunctionRequest* request = tasks[i].function();
      if (request == nullptr) return internal_error("a conversion among functions");
      if (std::holds_alternative<ListRequest>(tasks[i].request))
        return list_variants(TRY(function_with_seeded_constants(request->text)), tasks[i], hooks);
      measurements[i] = std::make_unique<Measurement>(tasks[i], hooks, TRY(subject_of(tasks[i])),
                                                      team, survivors);
      return list_variants(measurements[i]->subject().function(), tasks[i], hooks);
    }());
  // Calls `step(measurement, task, listed)` for each that is tried.
  const auto for_each_tried = [&](auto&& step) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (!results[i] || measurements[i] == nullptr) continue;
      const Status status = step(*measurements[i], tasks[i], *results[i]);
      if (!status.ok()) results[i] = status;
    }
  };
  KernelsAhead ahead;
  const FunctionRequest* first = tasks[0].function();
  if (tasks.size() > 1 || (first != nullptr && first->only_named)) {
    for_each_tried([&](Measurement& measurement, const MeasureTask& task, auto& listed) {
      return add_all(listed, measurement.subject().function(), task, ahead);
    });
    ahead.compile(team.size(), hooks);
  }
  for_each_tried([&](Measurement& measurement, const MeasureTask& task, auto& listed) {
    return try_variants(measurement, task, ahead, listed);
  });
  const Status timed = survivors.time();
  for (Result<std::vector<TargetCosts>>& result : results) {
    if (!result) continue;
    if (timed.ok()) {
      survivors.describe(*result);
    } else {
      result = timed;
    }
  }
  return results;
}

Result<std::vector<TargetCosts>> measure_conversion(const MeasureTask& task,
                                                    const MeasureHooks& hooks, NoiseGate& gate) {
  hooks.begin("preparing");
  ThreadTeam team(task.options.threads);
  const TeamScope scope(team.size());
  Survivors survivors(task, hooks, gate, team);
  const auto& change = std::get<ConvertRequest>(task.request);
  Measurement measurement(task, hooks, TRY(Subject::of_conversion(change.type, task.options)), team,
                          survivors);
  std::vector<TargetCosts> results;
  for (const std::string& name : task.targets) {
    TargetCosts& entry = results.emplace_back();
    entry.target = name;
    entry.variants.push_back({{"convert", {change.from}, {change.to}}, Unknown{}});
    if (find_backend(name) == nullptr) entry.refusal = "backend is not available";
  }
  for (TargetCosts& entry : results) {
    if (!entry.refusal.empty()) continue;
    measurement.try_variant(entry.target, {}, entry.variants[0], [&] {
      return find_backend(entry.target)
          ->compile_conversion(change.type, change.from, change.to, task.options);
    });
    if (entry.variants[0].tried && !task.times()) break;
  }
  TRY(survivors.time());
  survivors.describe(results);
  return results;
}

}  // namespace collage
