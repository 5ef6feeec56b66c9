// collage run: compile (costs cached), run, print the summary.

#include <fmt/format.h>

#include "artifact.h"
#include "choose/cover_timing.h"
#include "dynamic_model.h"
#include "options.h"
#include "report/report.h"
#include "specialised.h"

namespace collage::tool {

namespace {

Status run(const SharedOptions& options) {
  if (std::optional<StagedProgram> staged = TRY(staged_artifact(options)))
    return run_staged(*staged, options);
  if (runs_artifact(options))
    return is_specialised(options) ? run_specialised(options) : run_artifact(options);
  Result<Model> loaded = load(options);
  if (!loaded) {
    StagedProgram staged = TRY(in_stages(options, loaded.status()));
    return run_staged(staged, options);
  }
  const Model model = TRY(std::move(loaded));
  std::vector<Tensor> inputs = TRY(make_inputs(model, options));
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds, inputs));
  std::vector<Tensor> outputs;
  BlockOptions block;
  block.warm_ups = 0;
  block.least_runs = 1;
  block.seconds_per_block = 1;
  TRY(run_block(*program.impl().executor, inputs, outputs, block, facts.samples));
  // The first one warms up, where there are others.
  facts.is_first_run = facts.samples.size() == 1;
  if (!facts.is_first_run) facts.samples.erase(facts.samples.begin());
  if (!options.save_outputs.empty())
    TRY(save_tensors(options.save_outputs, program.outputs(), outputs));
  if (!options.json.empty())
    TRY(write_json(options.json, report_json(model, program.impl().report, facts)));
  fmt::print("{}\n", summary(model, program.impl().report, facts));
  return {};
}

}  // namespace

Command add_run(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  CLI::App* command =
      app.add_subcommand("run", "compile and run a model; prints what runs where and how fast");
  add_compile_options(*command, *options, 0);
  add_config_option(*command, *options);
  add_input_options(*command, *options);
  add_output_option(*command, *options);
  return {command, [options] { return run(*options); }};
}

}  // namespace collage::tool
