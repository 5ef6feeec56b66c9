#include "compiler/compile.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "backend/targets/backends.h"
#include "backend/targets/external_mods.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/no_exceptions.h"
#include "base/resident_memory.h"
#include "base/stopwatch.h"
#include "compiler/check_options.h"
#include "compiler/decision.h"
#include "compiler/model_stages.h"
#include "compiler/plan_text.h"
#include "compiler/report_decision.h"
#include "ir/large_constants.h"
#include "ir/visitor.h"
#include "partition/stated_kernels.h"
#include "passes/inline_functions.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

// Of the linked model. Whatever computes meanwhile does so with as many threads as the program.
template <typename T>
Result<T> compiling(const Model& model, const ProgramOptions& options,
                    const std::function<Result<T>(const Model&)>& body) {
  return without_exceptions([&]() -> Result<T> {
    register_all();
    const int threads = ThreadTeam(options.threads).size();
    const TeamScope scope(threads);
    const Model own = TRY(linked(model));
    TRY(check_external_mods(own.impl().module.main(), threads));
    return body(options.strict_accuracy ? TRY(in_strict_form(own)) : own);
  });
}

// Returns the model with the operators of Primitive functions, which the host alone would compute
// as a whole, in their place; none if there are no such functions.
Result<std::optional<Model>> without_functions_of_the_host(const Model& model,
                                                           const Candidates& candidates,
                                                           const Decision& decision) {
  std::set<const FunctionNode*> functions;
  if (candidates.specs.size() == 1) return std::optional<Model>();  // nobody else was asked for
  for (const Cover::Kernel& kernel : decision.cover().kernels) {
    const CandidatePartition& partition = decision.found.candidates[kernel.candidate].partition;
    if (!partition.spec->is_host) continue;
    partition.sub_graph.inside().for_each([&](PostDfsIndex node) {
      const FunctionNode* function = called_primitive(candidates.graph->node(node).expr);
      if (function == nullptr || function->attrs.has("Compiler") || function->attrs.has("Target"))
        return;
      const std::vector<Expr> nodes = post_order(function->body);
      const auto is_call = [](const Expr& expr) { return expr->kind() == ExprKind::kCall; };
      if (std::count_if(nodes.begin(), nodes.end(), is_call) > 1) functions.insert(function);
    });
  }
  Module module = model.impl().module;
  if (functions.empty() || !TRY(take_apart(module, functions))) return std::optional<Model>();
  for (const FunctionNode* function : functions)
    log::warn("no toolchain takes {} as one kernel: its operators are compiled on their own",
              function->attrs.has("global_symbol")
                  ? "@" + text_attr(function->attrs, "global_symbol")
                  : "a Primitive function");
  return std::optional(TRY(equivalent_model(model, std::move(module))));
}

Result<Program> make_program(const Model& model, const ProgramOptions& options,
                             Progress* progress) {
  const Stopwatch watch;
  const Candidates candidates = TRY(find_candidates(model.impl().module, options));
  const double finding = watch.seconds();
  const auto context = TRY(CompileContext::open(model, options, candidates, progress));
  context->phase_seconds["candidates"] = finding;
  Decision decision = TRY(decide(candidates, *context));
  context->end_phase("covers");
  if (const auto apart = TRY(without_functions_of_the_host(model, candidates, decision)))
    return make_program(*apart, options, progress);
  TRY(measure_in_situ(decision, *context));
  if (options.max_error > 0 && !interrupted())
    decision = TRY(lowered(std::move(decision), candidates, *context));
  if (!model.impl().is_part) warn_of_silent_outputs(decision, *context);

  CompileReport report = TRY(report_decision(candidates, decision, *context));
  const int threads = context->compile.threads;
  std::shared_ptr<const Plan> plan = decision.chosen.lowered.plan;
  TRY(context->dump_module("partition", report.partitioned));
  TRY(context->dump_plan(*plan));
  if (options.rewrite_plan != nullptr)
    plan = TRY(parse_plan(options.rewrite_plan(to_text(*plan)), *plan, threads)
                   .with_context("the plan as it was rewritten"));
  auto impl = std::make_shared<internal::CompiledProgram>(
      plan, TRY(Executor::create(plan, threads)), threads);
  impl->inputs = model.inputs();
  impl->outputs = model.outputs();
  impl->report = std::move(report);
  impl->any_threads = options.threads <= 0;
  impl->max_error = options.max_error;
  impl->features = context->compile.features;
  context->end_phase("report");
  impl->report.phase_seconds = context->phase_seconds;
  if (const auto& weights = decision.demands.weights)
    weights->remember(decision.cover(), decision.found.candidates);
  return Program(std::move(impl));
}

Result<std::optional<Executor>> make_alone(const Model& model, const ProgramOptions& options,
                                           const std::string& backend) {
  const Candidates candidates = TRY(find_candidates(model.impl().module, options));
  const auto context = TRY(CompileContext::open(model, options, candidates, nullptr));
  context->costs.measure_for(0);  // the compilation of the report measured what it rests on
  const std::optional<CoverSearch> found = TRY(search(candidates, *context));
  if (!found) return std::optional<Executor>();
  for (const NamedCover& cover : found->covers) {
    if (!cover.single_backend || cover.name != backend) continue;
    const LoweredPlan lowered = TRY(context->lower_cover(cover, found->candidates));
    return std::optional(TRY(Executor::create(lowered.plan, context->compile.threads)));
  }
  return std::optional<Executor>();
}

Result<CoverPrediction> predict(const Model& model, const ProgramOptions& options,
                                Progress* progress) {
  if (options.max_error > 0)
    return unsupported("which kernels may be lowered shows only when the model is run");
  const Candidates candidates = TRY(find_candidates(model.impl().module, options));
  const auto context = TRY(CompileContext::open(model, options, candidates, progress));
  const std::optional<CoverSearch> found = TRY(search(candidates, *context));
  if (!found)
    return unsupported("one toolchain is left: its kernels are not measured, so not predicted");
  return predict_cover(found->covers[0], context->choosing_among(found->candidates));
}

}  // namespace

Result<Program> compile_model(const Model& model, const ProgramOptions& options,
                              Progress* progress) {
  TRY(check_options(model, options));
  Result<Program> program =
      compiling<Program>(model, options, [&](const Model& given) -> Result<Program> {
        return make_program(given, TRY(completed(options)), progress);
      });
  return_unused_memory();
  return program;
}

Result<std::optional<Executor>> compile_alone(const Model& model, const ProgramOptions& options,
                                              const std::string& backend) {
  return compiling<std::optional<Executor>>(
      model, options, [&](const Model& given) { return make_alone(given, options, backend); });
}

Result<CoverPrediction> predict_seconds(const Model& model, const ProgramOptions& options,
                                        Progress* progress) {
  TRY(check_options(model, options));
  return compiling<CoverPrediction>(
      model, options, [&](const Model& given) { return predict(given, options, progress); });
}

internal::CompiledProgram::CompiledProgram(std::shared_ptr<const Plan> made_of, Executor made,
                                           int count)
    : FixedProgram(std::move(made_of), count) {
  auto context = std::make_unique<FixedContext>(std::move(made));
  executor = &context->executor;
  own_ = std::move(context);
}

Status internal::CompiledProgram::save(const std::filesystem::path&, const std::string&) {
  return usage_error("it is saved with the model that it was compiled from");
}

Result<Program> Program::compile(const Model& model, const ProgramOptions& options) {
  Result<Program> program = compile_model(model, options);
  if (!program || options.keep_module) return program;
  forget_large_constants(program->impl().report);  // kernels hold what they need
  program->impl().keeps_weights = false;
  return program;
}

Result<Program> Program::compile(const Model& model) { return compile(model, ProgramOptions()); }

internal::CompiledProgram& Program::impl() {
  return dynamic_cast<internal::CompiledProgram&>(*impl_);
}
const internal::CompiledProgram& Program::impl() const {
  return dynamic_cast<const internal::CompiledProgram&>(*impl_);
}

Result<Model> Program::module() const {
  const auto* compiled = dynamic_cast<const internal::CompiledProgram*>(impl_.get());
  if (compiled == nullptr) return usage_error("no model was compiled to this program here");
  if (!compiled->keeps_weights)
    return usage_error(
        "the program was compiled without keep_module: its weights are in its kernels");
  return without_exceptions([&]() -> Result<Model> {
    Model result = model_of(compiled->report.partitioned);
    result.impl().inputs = compiled->inputs;
    result.impl().outputs = compiled->outputs;
    return result;
  });
}

}  // namespace collage
