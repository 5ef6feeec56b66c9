#include "compiler/tuning_passes.h"

#include "compiler/backends.h"
#include "compiler/compilation.h"
#include "ir/structural.h"

namespace collage {

namespace {

// `body` with a compilation of the module that is ready to be asked for costs.
template <typename Body>
Result<bool> with_costs(const Module& module, const ProgramOptions& options, Body&& body) {
  register_all();
  CompileReport report;
  const Model model = model_of(module);
  Compilation compilation(model, options, nullptr, report);
  TRY(compilation.gather());
  TRY(compilation.open_costs());
  return body(compilation);
}

}  // namespace

Pass task_extraction(const ProgramOptions& options, std::vector<TuningTask>& tasks) {
  return {"task_extraction", [options, &tasks](Module& module) {
            return with_costs(module, options, [&](Compilation& compilation) -> Result<bool> {
              for (TuningTask& task : TRY(compilation.extract_tasks()))
                tasks.push_back(std::move(task));
              return false;
            });
          }};
}

Pass apply_history_best(const ProgramOptions& given) {
  ProgramOptions options = given;
  options.always_measure = true;  // what one toolchain can do is looked up too
  options.frozen_costs = true;
  return {"apply_history_best", [options](Module& module) {
            return with_costs(module, options, [&](Compilation& compilation) -> Result<bool> {
              TRY(compilation.search());
              Module partitioned = TRY(compilation.apply_history());
              if (structural_equal(partitioned, module)) return false;
              module = std::move(partitioned);
              return true;
            });
          }};
}

}  // namespace collage
