#include "compiler/tuning_passes.h"

#include <unordered_map>
#include <utility>

#include "backend/targets/backends.h"
#include "base/regex.h"
#include "compiler/check_options.h"
#include "compiler/decision.h"
#include "compiler/program_schedules.h"
#include "compiler/report_decision.h"
#include "ir/visitor.h"
#include "partition/stated_kernels.h"
#include "tensor_program/call.h"

namespace collage {

namespace {

// `body` with what the module's targets could take of it, and a context that can be asked for
// costs; by `options`, made of what is `given`.
template <typename Body>
Result<bool> with_candidates(const Module& module, const ProgramOptions& given,
                             const ProgramOptions& options, Body&& body) {
  register_all();
  const Model model = model_of(module);
  TRY(check_options(model, given));
  const Candidates candidates = TRY(find_candidates(module, options));
  const auto context = TRY(CompileContext::open(model, options, candidates, nullptr));
  return body(candidates, *context);
}

// A call of a program as the kernel that is fastest where the program is a model of its own.
Result<Expr> tuned_call(const Expr& given, const ProgramOptions& options) {
  const CallNode* call = as<CallNode>(given);
  std::vector<Expr> params, args = call->args;
  std::unordered_map<const ExprNode*, Expr> given_args;
  for (Expr& arg : args) {
    if (as<ConstantNode>(arg) != nullptr) continue;
    params.push_back(make_var("p" + std::to_string(params.size()), arg->type()));
    given_args[params.back().get()] = std::exchange(arg, params.back());
  }
  const Expr alone = TRY(make_call(*call->op, args, call->attrs, call->origin()));
  const Program program =
      TRY(compile_model(model_of(Module(make_function(params, alone))), options));
  const Module tuned =
      TRY(with_program_schedules(program.impl().report.partitioned, program.threads()));
  for (size_t i = 0; i < params.size(); ++i)
    given_args[tuned.main()->params[i].get()] = given_args.at(params[i].get());
  return substitute(tuned.main()->body, given_args);
}

}  // namespace

Pass tune(const std::string& filter, const ProgramOptions& given) {
  ProgramOptions options = given;
  options.always_measure = true;
  return {"tune", [filter, options](Module& module) -> Result<bool> {
            register_all();
            const Regex names = TRY(Regex::parse(filter));
            Rewriter rewriter([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
              const CallNode* call = as_op(rebuilt, tensor_program::kCallOp);
              const bool is_meant = call != nullptr && names.found_in(call->attrs.string("name"));
              return is_meant ? tuned_call(rebuilt, options) : rebuilt;
            });
            module.functions["main"] = TRY(rewriter.rewrite(module.main()));
            return rewriter.changed();
          }};
}

Pass task_extraction(const ProgramOptions& options, std::vector<TuningTask>& tasks) {
  return {"task_extraction", [options, &tasks](Module& module) {
            return with_candidates(
                module, options, options,
                [&](const Candidates& candidates, CompileContext& context) -> Result<bool> {
                  for (TuningTask& task : TRY(tasks_of(candidates, context.costs)))
                    tasks.push_back(std::move(task));
                  return false;
                });
          }};
}

Pass kernel_building(const ProgramOptions& options, MeasuredCosts::Built& built) {
  return {"kernel_building", [&](Module& module) {
            return with_candidates(
                module, options, options,
                [&](const Candidates& candidates, CompileContext& context) -> Result<bool> {
                  std::vector<MeasuredCosts::FunctionQuestion> questions;
                  for (TuningTask& task : TRY(tasks_of(candidates, context.costs)))
                    questions.push_back({std::move(task.function), std::move(task.targets)});
                  built += TRY(context.costs.build(questions, RoundingLimit::kDefault));
                  if (options.max_error > 0)
                    built += TRY(context.costs.build(questions, RoundingLimit::kAny));
                  return false;
                });
          }};
}

Pass apply_history_best(const ProgramOptions& given) {
  ProgramOptions options = given;
  options.always_measure = true;  // what one toolchain can do is looked up too
  options.frozen_costs = true;
  return {"apply_history_best", [given, options](Module& module) {
            return with_candidates(
                module, given, options,
                [&](const Candidates& candidates, CompileContext& context) -> Result<bool> {
                  if (StatedKernels(*candidates.graph).are_complete()) return false;
                  const CoverSearch found = *TRY(search(candidates, context));
                  const size_t fastest =
                      fastest_known(found.covers, context.choosing_among(found.candidates));
                  module = TRY(with_program_schedules(
                      TRY(partitioned_by(found.covers[fastest], found.candidates, candidates)),
                      context.compile.threads));
                  return true;
                });
          }};
}

}  // namespace collage
