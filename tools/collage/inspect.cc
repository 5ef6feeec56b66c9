// collage inspect: what a model needs, what each backend could take of it, and what none can.
// Nothing is measured. A model that cannot be imported, and does not run in stages either, ends
// with status 4, as everywhere, after all that is in the way.

#include <fmt/format.h>

#include "backend/targets/plugins.h"
#include "dynamic_model.h"
#include "options.h"
#include "report/inspection.h"

namespace collage::tool {

namespace {

Status inspect(const SharedOptions& options) {
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  TRY(check_destinations(options));
  const Inspection inspection =
      TRY(inspect_model(options.model, TRY(load_options(options)), TRY(program_options(options))));
  fmt::print("{}", to_text(inspection));
  if (!options.json.empty()) TRY(write_json(options.json, to_json(inspection)));
  if (inspection.status.ok()) return {};
  TRY(runs_in_stages(options, inspection.status));
  fmt::print(
      "\nIt runs in stages: the host computes these nodes, or they are imported once what they "
      "wait "
      "for is known.\n");
  return {};
}

}  // namespace

Command add_inspect(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "what a model needs and which backend could take what; nothing is measured");
  add_model_option(*command, *options);
  add_target_flags(*command, *options);
  add_config_option(*command, *options);
  command->add_option("--json", options->json, "write the same as JSON here");
  return {command, [options] { return inspect(*options); }};
}

}  // namespace collage::tool
