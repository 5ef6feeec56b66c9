// collage explain: why this partition; of one kernel, why it was chosen and what pinning it
// elsewhere would cost; why a node does not run on a target.

#include "report/explain.h"

#include <fmt/format.h>

#include "report_source.h"

namespace collage::tool {

namespace {

struct ExplainOptions : SharedOptions {
  std::string kernel;
  std::string target;  // asked why the node does not run there
};

std::vector<std::string> onnx_nodes(const nlohmann::json& kernel) {
  std::vector<std::string> names;
  for (const nlohmann::json& op : kernel["ops"])
    if (const std::string& name = op["onnx_node"].get_ref<const std::string&>(); !name.empty())
      names.push_back(name);
  return names;
}

Status explain(const ExplainOptions& options) {
  ReportSource source = TRY(ReportSource::open(options, false));
  std::string text;
  if (!options.target.empty()) {
    const std::string &target = options.target, &node = options.kernel;
    // The answer must exist before anything is searched for it.
    TRY(explain_why_not(source.report(), target, node));
    for (const nlohmann::json& known : source.report()["nodes"])
      if (known["onnx_node"] == node && known["op"] != "input") {
        source.ask("--pin", exactly({node}) + "=" + target);
        break;
      }
    text = TRY(explain_why_not(source.report(), target, node));
  } else if (!options.kernel.empty()) {
    const nlohmann::json kernel = *TRY(find_kernel(source.report(), options.kernel));
    if (std::vector<std::string> names = onnx_nodes(kernel); !names.empty())
      for (const nlohmann::json& target : source.report()["targets"])
        if (target != kernel["target"])
          source.ask("--pin", exactly(names) + "=" + target.get<std::string>());
    text = explain_kernel(source.report(), kernel);
  } else {
    source.ask_each_target();
    text = explain_plan(source.report());
  }
  fmt::print("{}", text);
  if (!options.json.empty()) TRY(write_json(options.json, source.report()));
  return {};
}

}  // namespace

Command add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "why this partition: alternatives, what they cost and why they lost");
  command->add_option("MODEL", options->model, "a model, an artifact, or a report of --json")
      ->required();
  command->add_option("KERNEL", options->kernel, "a kernel's name, or an ONNX node's");
  command->add_option("TARGET", options->target, "why that node does not run on this target");
  add_compile_flags(*command, *options);
  add_config_option(*command, *options);
  command->add_option("--json", options->json, "write the report here");
  return {command, [options] { return explain(*options); }};
}

}  // namespace collage::tool
