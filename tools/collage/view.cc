// collage view: a plan as one self-contained HTML file.

#include <fmt/format.h>

#include "base/files.h"
#include "report/html_page.h"
#include "report_source.h"

namespace collage::tool {

namespace {

struct ViewOptions : SharedOptions {
  std::string output;
};

Status view(const ViewOptions& options) {
  TRY(check_writable_file("-o", options.output));
  ReportSource source = TRY(ReportSource::open(options, true));
  source.ask_each_target();
  TRY(write_file_atomically(options.output, html_page(source.report())));
  if (!options.json.empty()) TRY(write_json(options.json, source.report()));
  return {};
}

}  // namespace

Command add_view(CLI::App& app) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command =
      app.add_subcommand("view", "write a plan as one HTML page: graph, costs, alternatives");
  command->add_option("MODEL", options->model, "a model, an artifact, or a report of --json")
      ->required();
  command->add_option("-o", options->output, "the HTML file to write")->required();
  add_compile_flags(*command, *options);
  add_config_option(*command, *options);
  add_input_options(*command, *options);
  return {command, [options] { return view(*options); }};
}

}  // namespace collage::tool
