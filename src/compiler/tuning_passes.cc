#include "compiler/tuning_passes.h"

#include "backend/targets/backends.h"
#include "compiler/check_options.h"
#include "compiler/decision.h"
#include "compiler/report_decision.h"
#include "ir/structural.h"

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

}  // namespace

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
                  const CoverSearch found = *TRY(search(candidates, context));
                  const size_t fastest =
                      fastest_known(found.covers, context.choosing_among(found.candidates));
                  Module partitioned =
                      TRY(partitioned_by(found.covers[fastest], found.candidates, candidates));
                  if (structural_equal(partitioned, module)) return false;
                  module = std::move(partitioned);
                  return true;
                });
          }};
}

}  // namespace collage
