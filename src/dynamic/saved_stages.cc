#include "dynamic/saved_stages.h"

#include <collage/dynamic.h>

#include <nlohmann/json.hpp>

#include "artifact/load_artifact.h"
#include "artifact/saved_values.h"
#include "base/no_exceptions.h"
#include "dynamic/dynamic_program.h"
#include "runtime/saved_fields.h"

namespace collage {

using nlohmann::json;

namespace {

// With these the stages are compiled that the file does not hold, too.
json add_options(const DynamicOptions& options, PlanSaver& saver) {
  return {
      {"targets", options.program.targets}, {"devices", options.program.devices},
      {"exclude", options.program.exclude}, {"pin", options.program.pin},
      {"memory", options.program.memory},   {"strict_accuracy", options.program.strict_accuracy},
      {"buckets", options.buckets},         {"padding", options.padding},
      {"states", options.states},           {"constants", add_tensors(options.constants, saver)}};
}

Status read_options(const JsonFields& fields, const SharedBytes& weights, DynamicOptions& options) {
  options.program.targets = TRY(texts_from(fields, "targets"));
  options.program.exclude = TRY(texts_from(fields, "exclude"));
  // Files of before these were kept have none of them.
  options.program.devices = TRY(fields.text("devices", ""));
  if (fields.has("pin")) options.program.pin = TRY(texts_from(fields, "pin"));
  if (fields.has("memory")) options.program.memory = TRY(texts_from(fields, "memory"));
  options.program.strict_accuracy = TRY(fields.flag("strict_accuracy"));
  options.buckets = TRY(sizes_from(fields, "buckets"));
  options.padding = TRY(numbers_from(fields, "padding"));
  options.states = TRY(names_from(fields, "states"));
  options.constants = TRY(tensors_from(fields, "constants", weights));
  return {};
}

}  // namespace

Result<std::shared_ptr<SavedStages>> SavedStages::load(std::shared_ptr<ArtifactFile> file,
                                                       DynamicOptions& options) {
  const auto read = [&]() -> Result<std::shared_ptr<SavedStages>> {
    const SharedBytes text = TRY(file->entry(kStagesEntry));
    const json value = parse_json(text.text());
    const JsonFields fields(value);
    TRY(read_options(JsonFields(*TRY(fields.object("options"))), TRY(file->entry(kWeightsEntry)),
                     options));
    options.program.max_error = file->manifest().max_error;
    std::shared_ptr<SavedStages> saved(new SavedStages(file));
    saved->entries_ = TRY(names_from(fields, "plans"));
    return saved;
  };
  return without_exceptions([&]() -> Result<std::shared_ptr<SavedStages>> {
    TRY(check_requirements(file->manifest()));
    TRY(check_loaded_by("Program::compile", file->manifest()));
    file->use_threads(options.program.threads);
    if (!file->manifest().any_threads) options.program.threads = file->threads();
    return or_bad_model(read());
  });
}

Result<std::shared_ptr<const Plan>> SavedStages::find(const std::string& key) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return nullptr;
  return TRY(load_plan_of(*file_, entry->second)).plan;
}

Status write_artifact(const std::filesystem::path& path, internal::DynamicProgram& program,
                      const PlanFacts& facts) {
  std::map<std::string, std::shared_ptr<const Plan>> plans;
  TRY(program.graph->add_plans(plans));
  PlanSaver saver(facts.threads);
  json entries = json::object();
  for (const auto& [key, plan] : plans) {
    const std::string entry = fmt::format("plans/{:05}", entries.size());
    TRY(saver.add(entry, *plan));
    entries[key] = entry;
  }
  saver.add_text(kStagesEntry, json_text({{"options", add_options(program.options, saver)},
                                          {"plans", std::move(entries)}}));
  saver.add_text(kModelEntry, TRY(program.context.model->content()));
  return write_artifact(path, TRY(saver.finish()), facts, {});
}

}  // namespace collage
