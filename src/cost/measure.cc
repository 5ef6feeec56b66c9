#include "cost/measure.h"

#include <sys/wait.h>

#include <cstring>
#include <exception>
#include <new>

#include "backend/compile_kernel.h"
#include "cost/timing.h"
#include "cost/timing_memory.h"
#include "cost/trial.h"
#include "ir/visitor.h"

namespace collage {

namespace {

// Runs what a backend does on our behalf; an exception, which backends promise not to throw, is a
// refusal. A backend that ran out of memory may still hold all of it: the worker is given up.
template <typename F>
auto guarded(const MeasureHooks& hooks, F&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    hooks.give_up("out of memory (bad_alloc)");
    return internal_error("out of memory (bad_alloc)");
  } catch (const std::exception& exception) {
    return internal_error("threw an exception: {}", exception.what());
  } catch (...) {
    return internal_error("threw an exception");
  }
}

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

// The function over copies of its constants: kernels that read them in place, without packing,
// would find in the caches what a rival read just before.
Result<Function> with_own_constants(const Function& function) {
  Rewriter copies([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* constant = as<ConstantNode>(rebuilt);
    return constant == nullptr ? rebuilt
                               : make_constant(constant->value.clone(), constant->origin());
  });
  return copies.rewrite(function);
}

// As lowering will.
void place(TimedKernel& kernel, const InPlace& wish) {
  const bool joins = wish.joins();
  TimedBuffer& part = joins ? kernel.inputs[wish.input] : kernel.outputs[wish.output];
  const TimedBuffer& whole = joins ? kernel.outputs[wish.output] : kernel.inputs[wish.input];
  if (joins) std::memcpy(static_cast<uint8_t*>(whole.data) + wish.offset, part.data, part.bytes);
  part.data = static_cast<uint8_t*>(whole.data) + wish.offset;
}

// Measures the variants of one subject: tries each alone, then times the survivors together.
class Measurement {
 public:
  Measurement(const MeasureTask& task, const MeasureHooks& hooks, NoiseGate& gate, Subject subject,
              ThreadTeam& team)
      : task_(task), hooks_(hooks), gate_(gate), subject_(std::move(subject)), team_(team) {
    gate.know(task.usual);
    gate.allow(task.patience);
  }
  Subject& subject() { return subject_; }

  // Fills row.cost when the variant is not to be tried or fails; `compile` makes its kernel.
  template <typename Compile>
  void try_variant(const std::string& target, MeasuredVariant& row, Compile&& compile) {
    std::string name = row.subject(target);
    if (task_.excludes(name)) {
      if (auto it = task_.skip.find(name); it != task_.skip.end()) row.cost = it->second;
      return;
    }
    hooks_.begin(name);
    Result<Trial> trial = guarded(hooks_, [&]() -> Result<Trial> {
      TRY(subject_.check_fit(row.variant));
      std::unique_ptr<Kernel> kernel = TRY(compile());
      return try_kernel(std::move(kernel), row.variant, subject_, team_);
    });
    if (has_children()) hooks_.give_up("left a child process behind");
    if (!trial) {
      row.cost = Invalid{trial.status().to_string()};
      return;
    }
    row.repeatable = trial->repeatable;
    row.tried = true;
    if (row.variant.lowered) row.error = trial->agreement.error;
    if (!task_.until_right) survivors_.push_back({std::move(name), &row, std::move(trial).value()});
  }

  // Fills in the costs of the survivors, and how they were measured.
  Status finish(std::vector<TargetCosts>& results) {
    TRY(time_survivors());
    for (TargetCosts& entry : results) {
      entry.effort = task_.effort;
      entry.conditions = conditions_;
      entry.conditions.usual = gate_.usual();
      entry.conditions.usual.memory = memory_;
    }
    return {};
  }

 private:
  Status time_survivors() {
    TimingMemory memory;
    std::vector<TimedKernel> timed;
    std::vector<std::string> names;
    for (Survivor& survivor : survivors_) {
      Trial& trial = survivor.trial;
      TimedKernel kernel;
      kernel.kernel = trial.kernel.get();
      for (size_t i = 0; i < trial.inputs.size(); ++i)
        kernel.inputs.push_back({TRY(memory.copy_of(trial.inputs[i], "input " + std::to_string(i))),
                                 trial.inputs[i]->bytes()});
      for (size_t i = 0; i < trial.outputs.size(); ++i) {
        size_t bytes = trial.outputs[i].bytes();
        kernel.outputs.push_back({TRY(memory.zeros(bytes, "output " + std::to_string(i))), bytes});
      }
      for (const InPlace& wish : trial.kernel->in_place()) place(kernel, wish);
      size_t bytes = trial.workspace.bytes();
      kernel.workspace = {TRY(memory.zeros(bytes, "the workspace")), bytes};
      timed.push_back(std::move(kernel));
      names.push_back(survivor.name);
    }
    if (timed.empty()) return {};
    hooks_.timing(names);
    std::vector<Result<Block>> blocks = TRY(time_block(timed));
    for (size_t i = 0; i < survivors_.size(); ++i) {
      MeasuredVariant& row = *survivors_[i].row;
      hooks_.begin(names[i]);
      Status status = blocks[i].status();
      if (status.ok()) status = check_buffers(timed[i], memory);
      Trial& trial = survivors_[i].trial;
      for (size_t o = 0; o < trial.outputs.size(); ++o)
        std::memcpy(trial.outputs[o].data(), timed[i].outputs[o].data, trial.outputs[o].bytes());
      if (status.ok()) status = check_after_timing(trial, row.variant, subject_);
      row.cost = status.ok() ? Cost(of_blocks({*blocks[i]})) : Cost(Invalid{status.to_string()});
    }
    return {};
  }

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
    MeasuredVariant* row;  // where its cost goes
    Trial trial;
  };
  const MeasureTask& task_;
  const MeasureHooks& hooks_;
  NoiseGate& gate_;
  Subject subject_;
  ThreadTeam& team_;
  std::vector<Survivor> survivors_;
  Conditions conditions_;  // the machine's while the survivors were timed
  double memory_ = 0;      // seconds a byte, at the better look; 0: not seen
};

}  // namespace

Result<std::vector<TargetCosts>> measure_function(const MeasureTask& task,
                                                  const MeasureHooks& hooks, NoiseGate& gate) {
  hooks.begin("preparing");
  ThreadTeam team(task.options.threads);
  const TeamScope scope(team.size());
  Measurement measurement(task, hooks, gate, TRY(Subject::of_function(task)), team);
  const Function& function = measurement.subject().function();
  std::vector<TargetCosts> results;
  for (const std::string& text : task.targets) {
    TargetCosts& entry = results.emplace_back();
    entry.target = text;
    if (auto it = task.skip.find(text); it != task.skip.end()) {
      entry.refusal = it->second.reason;
      entry.death = it->second.death;
      continue;
    }
    Target target = TRY(Target::parse(text));
    Backend* backend = find_backend(target.kind);
    if (backend == nullptr) {
      entry.refusal = "backend is not available";
      continue;
    }
    hooks.begin(text);
    Result<std::vector<Variant>> variants = guarded(hooks, [&] {
      return task.lowered ? backend->lowered_variants(function, target, task.options)
                          : backend->variants(function, target, task.options);
    });
    if (!variants) {
      entry.refusal = variants.status().to_string();
      continue;
    }
    if (variants->empty()) entry.refusal = "no variants";
    for (Variant& variant : *variants) entry.variants.push_back({std::move(variant), Unknown{}});
  }
  const bool turns = task.cache == CacheState::kStreaming && !task.until_right;
  for (TargetCosts& entry : results) {
    Target target = TRY(Target::parse(entry.target));
    for (MeasuredVariant& row : entry.variants) {
      measurement.try_variant(entry.target, row, [&]() -> Result<std::unique_ptr<Kernel>> {
        return compile_kernel(*find_backend(target.kind),
                              turns ? TRY(with_own_constants(function)) : function, row.variant,
                              target, task.options);
      });
      if (task.until_right && row.tried) break;
    }
  }
  TRY(measurement.finish(results));
  return results;
}

Result<std::vector<TargetCosts>> measure_conversion(const MeasureTask& task,
                                                    const MeasureHooks& hooks, NoiseGate& gate) {
  hooks.begin("preparing");
  ThreadTeam team(task.options.threads);
  const TeamScope scope(team.size());
  Measurement measurement(task, hooks, gate, TRY(Subject::of_conversion(task)), team);
  std::vector<TargetCosts> results;
  for (const std::string& name : task.targets) {
    TargetCosts& entry = results.emplace_back();
    entry.target = name;
    entry.variants.push_back({{"convert", {task.from}, {task.to}, false}, Unknown{}});
    if (find_backend(name) == nullptr) entry.refusal = "backend is not available";
  }
  for (TargetCosts& entry : results) {
    if (!entry.refusal.empty()) continue;
    measurement.try_variant(entry.target, entry.variants[0], [&] {
      return find_backend(entry.target)
          ->compile_conversion(task.type, task.from, task.to, task.options);
    });
    if (task.until_right && entry.variants[0].tried) break;
  }
  TRY(measurement.finish(results));
  return results;
}

}  // namespace collage
