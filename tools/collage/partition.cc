// collage partition: the partitioned module as text.

#include <fmt/format.h>

#include "ir/text_printer.h"
#include "options.h"
#include "report/report.h"

namespace collage::tool {

namespace {

Status partition(const SharedOptions& options) {
  Model model = TRY(load(options));
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds));
  PrintOptions print;
  print.constants = PrintOptions::Constants::kShapeOnly;
  fmt::print("{}\n", to_text(program.impl().report.partitioned, print));
  if (!options.json.empty())
    TRY(write_json(options.json, report_json(model, program.impl().report, facts)));
  return {};
}

}  // namespace

Command add_partition(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  CLI::App* command = app.add_subcommand("partition", "print the partitioned module as text");
  add_compile_options(*command, *options);
  command->add_option("--json", options->json, "write the report here");
  return {command, [options] { return partition(*options); }};
}

}  // namespace collage::tool
