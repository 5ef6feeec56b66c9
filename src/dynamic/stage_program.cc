#include "dynamic/stage_program.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "base/stopwatch.h"
#include "choose/candidates.h"
#include "compiler/compile.h"
#include "frontend/onnx/importer.h"
#include "ir/large_constants.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "ops/interpreter.h"
#include "runtime/executor.h"
#include "runtime/run_number.h"

namespace collage {

namespace {

// Compiling takes milliseconds; the reference computes this in less than one.
constexpr double kFewFlops = 2e5;
constexpr double kFewBytes = 1 << 20;
// And this in as long as compiling takes.
constexpr double kCompilingInFlops = 2e7;

ImportedModel imported_model(const frontend::ImportedStage& stage) {
  ImportedModel model;
  model.module = *stage.module;
  model.input_names = stage.inputs;
  model.output_names = stage.outputs;
  return model;
}

ProgramOptions unmeasured(ProgramOptions options, const std::string& target) {
  options.targets = {target};
  options.config.clear();
  options.effort = std::min(options.effort, Effort::kDefault);
  options.always_measure = false;
  options.max_error = 0;
  options.pin.clear();
  return options;
}

class Interpreted : public StageProgram {
 public:
  // `flops`: those after which it is worth compiling.
  Interpreted(const frontend::ImportedStage& stage, const ProgramOptions& options, double flops)
      : model_(imported_model(stage)),
        options_(unmeasured(options, "reference")),
        flops_of_run_(function_flops(model_.module.main())),
        flops_left_(flops) {}
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    flops_left_ -= flops_of_run_;
    return interpret(model_.module.main(), inputs);
  }
  bool is_worth_compiling() const override { return flops_left_ < 0; }
  // The reference's kernels, which are the interpreter.
  Result<std::shared_ptr<const Plan>> plan() const override {
    const Program program =
        TRY(compile_model(TRY(simplified_model(ImportedModel(model_))), options_, nullptr));
    return program.impl().plan;
  }

 private:
  ImportedModel model_;
  ProgramOptions options_;
  double flops_of_run_, flops_left_;
};

class ComputedByOthers : public StageProgram {
 public:
  ComputedByOthers(Module module, const StageContext& context)
      : module_(std::move(module)), context_(context) {}
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    return context_.compute(module_, inputs);
  }
  Result<std::shared_ptr<const Plan>> plan() const override {
    return internal_error("others compute it");
  }

 private:
  Module module_;
  const StageContext& context_;
};

// Whoever runs stages counts their runs.
Result<std::vector<Tensor>> run_with_number(Executor& executor, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs(executor.plan().outputs.size());
  TRY(executor.run_as(inputs, outputs, RunNumber::of_user()));
  return outputs;
}

class Compiled : public StageProgram {
 public:
  explicit Compiled(Program program) : program_(std::move(program)) {}
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    return run_with_number(*program_.impl().executor, inputs);
  }
  Result<std::shared_ptr<const Plan>> plan() const override { return program_.impl().plan; }

 private:
  Program program_;
};

class Loaded : public StageProgram {
 public:
  Loaded(std::shared_ptr<const Plan> plan, Executor executor)
      : plan_(std::move(plan)), executor_(std::move(executor)) {}
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    return run_with_number(executor_, inputs);
  }
  Result<std::shared_ptr<const Plan>> plan() const override { return plan_; }

 private:
  std::shared_ptr<const Plan> plan_;
  Executor executor_;
};

bool has_empty_tensors(const Function& function) {
  const std::vector<Expr> nodes = post_order(function->body);
  return std::any_of(nodes.begin(), nodes.end(), [](const Expr& node) {
    const std::vector<TensorType> leaves = node->type().leaves();
    return std::any_of(leaves.begin(), leaves.end(),
                       [](const TensorType& leaf) { return num_elements(leaf.shape) == 0; });
  });
}

bool fits(const Plan& plan, const frontend::ImportedStage& stage) {
  const auto same = [](const PlanSignature& signature, const TensorType& type) {
    return signature.type == type;
  };
  const std::vector<TensorType> results = stage.module->main()->body->type().leaves();
  return plan.inputs.size() == stage.inputs.size() &&
         std::equal(plan.outputs.begin(), plan.outputs.end(), results.begin(), results.end(), same);
}

bool is_little_work(const Function& function) {
  return function_flops(function) < kFewFlops && function_bytes(function) < kFewBytes;
}

// Whether what the options ask for takes no measuring, or cannot be had without.
bool is_only_as_asked(const ProgramOptions& options) {
  return options.targets.size() == 1 || options.frozen_costs || options.cost_model != nullptr ||
         options.always_measure || options.effort == Effort::kMax || options.max_error > 0 ||
         !options.config.empty() || !options.pin.empty();
}

// That was fastest alone, the host doing what it cannot.
std::string best_target(const CompileReport& report) {
  for (const std::string& target : report.targets)
    if (report.best_single_backend == target ||
        report.best_single_backend.starts_with(target + " ("))
      return target;
  return "";
}

// Of the targets in use one that compiles fast; else the best that is known; else the last before
// the host, since those that come first take few operators.
Result<std::string> quick_target(const StageContext& context) {
  const TargetChoice choice = TRY(choose_targets(context.options));
  std::string last;
  for (const PartitionSpecPtr& spec : choice.specs) {
    const Backend* backend = find_backend(spec->target.kind);
    if (backend != nullptr && backend->traits().compiles_fast) return spec->target.to_string();
    if (last.empty() || !spec->is_host) last = spec->target.to_string();
  }
  return context.best_target.empty() ? last : context.best_target;
}

Result<Program> compile_as_asked(const Model& model, StageContext& context) {
  Program program = TRY(compile_model(model, context.options, context.progress));
  if (context.best_target.empty()) context.best_target = best_target(program.impl().report);
  return program;
}

Result<Program> compile(const Model& model, StageCare care, StageContext& context,
                        SpecialisationInfo& info) {
  if (care == StageCare::kAsAsked ||
      (care == StageCare::kKnown && is_only_as_asked(context.options)))
    return compile_as_asked(model, context);
  if (care == StageCare::kKnown) {
    ProgramOptions known = context.options;
    known.frozen_costs = true;
    Result<Program> program = compile_model(model, known, context.progress);
    if (program.ok()) return program;
  }
  info.quick = true;
  const bool any = care == StageCare::kQuick || context.best_target.empty();
  const std::string target = any ? TRY(quick_target(context)) : context.best_target;
  return compile_model(model, unmeasured(context.options, target), context.progress);
}

}  // namespace

std::string stage_key(const Module& stage) {
  std::vector<Tensor> constants;
  PrintOptions options;
  options.constants = PrintOptions::Constants::kSideFile;
  options.side_file = "constants";
  options.side_tensors = &constants;
  const std::string text = to_text(stage, options);
  Sha256 digest;
  digest.update(text.data(), text.size());
  for (const Tensor& constant : constants) digest.update(constant.raw(), constant.bytes());
  return digest.hex();
}

Result<std::unique_ptr<StageProgram>> make_stage_program(const frontend::ImportedStage& stage,
                                                         const std::string& key, StageCare care,
                                                         bool many_runs, StageContext& context,
                                                         SpecialisationInfo& info) {
  const Function& main = stage.module->main();
  if (context.compute != nullptr) return std::make_unique<ComputedByOthers>(*stage.module, context);
  const bool is_empty = has_empty_tensors(main);
  if (is_empty || (is_little_work(main) && !many_runs)) {
    info.interpreted = true;
    const bool may_compile = !is_empty && context.compile_on_demand;
    return std::make_unique<Interpreted>(
        stage, context.options,
        may_compile ? kCompilingInFlops : std::numeric_limits<double>::infinity());
  }
  const Stopwatch watch;
  if (context.saved != nullptr)
    if (std::shared_ptr<const Plan> plan = TRY(context.saved->find(key))) {
      if (!fits(*plan, stage)) return bad_model("{}: its plan is another stage's", info.part);
      info.kernels = plan->steps.size();
      Executor executor = TRY(Executor::create(plan, context.saved->threads()));
      info.compile_seconds = watch.seconds();
      return std::make_unique<Loaded>(std::move(plan), std::move(executor));
    }
  if (!context.compile_on_demand)
    return error(ErrorCode::kUnavailable,
                 "{} was not compiled for {}, and compiling on demand is off", info.part,
                 info.shapes);
  const Model model = TRY(simplified_model(imported_model(stage)));
  Program program = TRY(compile(model, care, context, info));
  forget_large_constants(program.impl().report);
  info.kernels = program.impl().report.kernels.size();
  info.compile_seconds = watch.seconds();
  return std::make_unique<Compiled>(std::move(program));
}

}  // namespace collage
