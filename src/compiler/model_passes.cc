#include "compiler/model_passes.h"

#include <algorithm>

#include "backend/targets/backends.h"
#include "base/no_exceptions.h"
#include "choose/candidates.h"
#include "compiler/claimed_kernels.h"
#include "compiler/codegen.h"
#include "compiler/model_stages.h"
#include "compiler/tuning_passes.h"
#include "ir/pattern_text.h"
#include "partition/rule_text.h"
#include "passes/passes.h"

namespace collage {

ModelPass model_pass(std::string name, std::function<Result<Module>(const Model&)> run) {
  return {std::move(name), [run = std::move(run)](const Model& model) {
            return without_exceptions([&]() -> Result<Model> {
              register_all();
              TRY(check_verified(model));
              return equivalent_model(model, TRY(run(model)));
            });
          }};
}

Result<PartitionSpecPtr> only_toolchain(const std::vector<PartitionSpecPtr>& specs) {
  std::vector<PartitionSpecPtr> toolchains;
  std::copy_if(specs.begin(), specs.end(), std::back_inserter(toolchains),
               [](const PartitionSpecPtr& spec) { return !spec->is_host; });
  if (toolchains.size() == 1) return toolchains[0];
  std::string named;
  for (const PartitionSpecPtr& spec : toolchains)
    named += (named.empty() ? "" : ", ") + spec->target.to_string();
  if (named.empty()) return usage_error("what no toolchain takes is the host's already: name one");
  return usage_error("one toolchain a pass, not several: {}", named);
}

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string toolchains_text(const ProgramOptions& options) {
  return options.config.empty() ? joined(options.targets) : options.config.string();
}

}  // namespace

Result<Model> run_passes(const Model& model, const std::vector<ModelPass>& passes) {
  TRY(verify_model(model).with_context("module before the passes"));
  Model current = model;
  for (const ModelPass& pass : passes) {
    if (!pass.run) return usage_error("pass {}: it is no function", pass.name);
    const std::string where = fmt::format("pass {}", pass.name);
    Model next = TRY(without_exceptions([&] { return pass.run(current); }).with_context(where));
    TRY(verify_model(next).with_context("module after " + where));
    current = std::move(next);
  }
  return current;
}

Result<std::vector<MeasuringTask>> extract_tasks(const Model& model,
                                                 const ProgramOptions& options) {
  return without_exceptions([&]() -> Result<std::vector<MeasuringTask>> {
    std::vector<TuningTask> tasks;
    Module module = TRY(linked(model)).impl().module;
    TRY(task_extraction(options, tasks).run(module));
    std::vector<MeasuringTask> result;
    for (const TuningTask& task : tasks) {
      MeasuringTask& told = result.emplace_back();
      told.function = task.text;
      for (const Target& target : task.targets) told.targets.push_back(target.to_string());
      told.unknown = task.unknown;
    }
    return result;
  });
}

namespace passes {

ModelPass simplify() {
  return {"simplify", [](const Model& model) {
            return without_exceptions([&] {
              register_all();
              return simplified(model);
            });
          }};
}

std::vector<std::string> standard_names() {
  std::vector<std::string> names;
  const Pipeline pipeline = simplification_pipeline();
  for (const Pass& pass : pipeline.passes())
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.push_back(pass.name);
  return names;
}

ModelPass standard(const std::string& name) {
  return model_pass(name, [name](const Model& model) -> Result<Module> {
    const Pipeline pipeline = simplification_pipeline();
    const auto found = std::find_if(pipeline.passes().begin(), pipeline.passes().end(),
                                    [&](const Pass& pass) { return pass.name == name; });
    if (found == pipeline.passes().end())
      return usage_error("there is no standard pass of that name; they are {}",
                         joined(standard_names()));
    Module module = model.impl().module;
    TRY(found->run(module));
    return module;
  });
}

ModelPass partition_for(const ProgramOptions& options) {
  return model_pass(fmt::format("partition_for({})", toolchains_text(options)),
                    [options](const Model& model) -> Result<Module> {
                      const TargetChoice choice = TRY(choose_targets(options));
                      const PartitionSpecPtr spec = TRY(only_toolchain(choice.specs));
                      return claim_for_target(model.impl().module, spec, choice.constraints);
                    });
}

ModelPass codegen(const ProgramOptions& options) {
  return model_pass(fmt::format("codegen({})", toolchains_text(options)),
                    [options](const Model& model) -> Result<Module> {
                      const TargetChoice choice = TRY(choose_targets(options));
                      return generate_code(model.impl().module, *TRY(only_toolchain(choice.specs)),
                                           options);
                    });
}

ModelPass fuse_pattern(const std::string& pattern, const std::string& label,
                       const std::string& compiler) {
  return model_pass(fmt::format("fuse_pattern({})", label),
                    [pattern, label, compiler](const Model& model) -> Result<Module> {
                      if (label.empty()) return usage_error("a kernel needs a label");
                      const DFPattern parsed = TRY(parse_pattern(pattern));
                      return claim_matches(model.impl().module, parsed, label, compiler);
                    });
}

Result<std::string> rule_text(const std::string& rule) {
  register_all();
  return TRY(parse_rule(rule)).text;
}

namespace {

ModelPass of_linked(const Pass& pass) {
  return model_pass(pass.name, [pass](const Model& model) -> Result<Module> {
    Module module = TRY(linked(model)).impl().module;
    TRY(pass.run(module));
    return module;
  });
}

}  // namespace

ModelPass apply_history_best(const ProgramOptions& options) {
  return of_linked(collage::apply_history_best(options));
}

ModelPass tune(const std::string& filter, const ProgramOptions& options) {
  return of_linked(collage::tune(filter, options));
}

}  // namespace passes
}  // namespace collage
