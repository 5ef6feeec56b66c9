// collage tune: measures what models need, so that compiling them later measures nothing.
// Resumable: what is measured is stored at once. Ctrl-C keeps it, and ends with status 130.

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "compiler/tuning_passes.h"
#include "options.h"
#include "report/report.h"

namespace collage::tool {

namespace {

// What all models together want of the database that it does not have. One model's is announced
// when its measuring begins.
Status announce(const std::vector<Model>& models, const SharedOptions& options) {
  std::vector<TuningTask> tasks;
  const Pass extraction = task_extraction(TRY(program_options(options)), tasks);
  for (const Model& model : models) {
    Module module = model.impl().module;
    TRY(extraction.run(module));
  }
  std::set<std::string> all, unknown;  // models share tasks
  for (const TuningTask& task : tasks) {
    all.insert(task.text);
    if (task.unknown > 0) unknown.insert(task.text);
  }
  log::info("{} models, {} functions, {} of them to measure", models.size(), all.size(),
            unknown.size());
  return {};
}

// What measuring would compile is compiled, for machines that measure alone.
Status build(const std::vector<Model>& models, const std::vector<std::string>& paths,
             const SharedOptions& options) {
  const ProgramOptions program = TRY(program_options(options));
  for (size_t m = 0; m < models.size(); ++m) {
    const Stopwatch watch;
    MeasuredCosts::Built built;
    Module module = models[m].impl().module;
    TRY(kernel_building(program, built).run(module).with_context(paths[m]));
    fmt::print("{}  {} functions and {} conversions built, {} of {} variants refused, {:.1f} s\n",
               paths[m], built.functions, built.conversions, built.refused, built.variants,
               watch.seconds());
    std::fflush(stdout);
    if (interrupted()) std::_Exit(kInterruptedStatus);
  }
  return {};
}

Status tune(SharedOptions options, bool only_builds, const std::vector<std::string>& models) {
  // All models are read first: a wrong name is found before minutes of measuring.
  options.always_measure = true;
  std::vector<Model> loaded;
  for (const std::string& path : models) {
    options.model = path;
    loaded.push_back(TRY(load(options)));
  }
  if (only_builds) return build(loaded, models, options);
  if (models.size() > 1) TRY(announce(loaded, options));
  for (size_t m = 0; m < models.size(); ++m) {
    double seconds = 0;
    Program program = TRY(compile(loaded[m], options, &seconds).with_context(models[m]));
    const CompileReport& report = program.impl().report;
    fmt::print(
        "{}  {} measured, {} known, {} variants invalid, {} measured on a busy machine, "
        "{:.1f} s\n",
        models[m], report.estimates.measured, report.estimates.cached, report.estimates.invalid,
        report.estimates.disturbed, seconds);
    if (const std::string refused = refused_for_failures(report.estimates); !refused.empty())
      fmt::print("{}\n", refused);
    std::fflush(stdout);
    if (interrupted()) std::_Exit(kInterruptedStatus);
  }
  return {};
}

}  // namespace

Command add_tune(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  auto models = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand(
      "tune", "measure what models need; compiling them later then measures nothing");
  command->add_option("MODEL", *models, "ONNX files, or Relay text (.relay)")->required();
  add_compile_flags(*command, *options);
  auto emit = std::make_shared<std::string>("costs");
  command
      ->add_option("--emit", *emit,
                   "costs (default), or kernels: compile what measuring may need, and measure "
                   "nothing")
      ->check(CLI::IsMember({"costs", "kernels"}));
  return {command, [=] { return tune(*options, *emit == "kernels", *models); }};
}

}  // namespace collage::tool
