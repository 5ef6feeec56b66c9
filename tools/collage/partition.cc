// collage partition: the partitioned module as text.
//
// With a configuration that has mock costs nothing is compiled or measured, and Relay text is taken
// as it is. With --frozen-costs nothing is compiled either: the module is partitioned as the
// database knows best. With --devices the module is planned and partitioned by device, and nothing
// else.

#include <fmt/format.h>

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "choose/light_cover.h"
#include "compiler/tuning_passes.h"
#include "ir/text_printer.h"
#include "options.h"
#include "partition/by_device.h"
#include "passes/devices/plan_devices.h"
#include "report/report.h"
#include "report_source.h"
#include "tensor_program/module_programs.h"

namespace collage::tool {

namespace {

nlohmann::json to_json(const ListedPartition& partition, const SharedOptions& options) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const ListedPartition::Kernel& kernel : partition.kernels) {
    nlohmann::json ops = nlohmann::json::array();
    for (const auto& [op, index] : kernel.calls) ops.push_back({{"op", op}, {"index", index}});
    kernels.push_back({{"name", kernel.name},
                       {"target", kernel.target},
                       {"ops", std::move(ops)},
                       {"cost", kernel.cost}});
  }
  return {{"model", std::filesystem::path(options.model).filename().string()},
          {"costs", partition.costs},
          {"kernels", std::move(kernels)},
          {"host", partition.host},
          {"cost", partition.cost},
          {"candidates", partition.candidates},
          {"truncated", partition.truncated},
          {"kept", partition.kept},
          {"estimates", partition.estimates}};
}

Status print_module(const Module& module, PrintOptions print = {}) {
  print.constants = PrintOptions::Constants::kShapeOnly;
  fmt::print("{}\n", to_text(TRY(tensor_program::named_programs(module)), print));
  return {};
}

Status partition_by_mock_costs(const SharedOptions& options, const PartitionConfig& config) {
  PrintOptions print;
  Model model = TRY(load_as_written(options, print.by_type_only));
  const MockPartition partition = TRY(mock_partition(model.impl().module, options, config));
  TRY(print_module(partition.module, print));
  if (!options.json.empty()) TRY(write_json(options.json, to_json(partition, options)));
  return {};
}

Status partition_lightly(const SharedOptions& options, const std::vector<PartitionSpecPtr>& specs,
                         const TargetConstraints& constraints) {
  Model model = TRY(load(options));
  ListedPartition partition =
      TRY(partition_without_costs(constraints.annotated(model.impl().module), specs));
  TRY(print_module(partition.module));
  if (!options.json.empty()) TRY(write_json(options.json, to_json(partition, options)));
  return {};
}

Status partition_for_devices(const SharedOptions& options) {
  const DeclaredDevices devices = TRY(DeclaredDevices::parse(options.devices));
  std::vector<DevicePin> pins;
  for (const std::string& pin : options.pin)
    pins.push_back(TRY(DevicePin::parse(pin).with_context("--pin")));
  PrintOptions print;
  Module module = TRY(load_as_written(options, print.by_type_only, true)).impl().module;
  Function& main = module.functions.at("main");
  if (!pins.empty()) main = TRY(annotate_devices(main, pins));
  module = TRY(plan_devices(module, devices));
  return print_module(TRY(partition_by_device(module, devices)), print);
}

Status partition(const SharedOptions& options) {
  register_all();
  for (const std::string& plugin : options.plugins) TRY(load_plugin(plugin));
  if (!options.devices.empty()) return partition_for_devices(options);
  if (!options.config.empty()) {
    PartitionConfig config = TRY(read_config(options.config));
    if (config.mock_costs) return partition_by_mock_costs(options, config);
  } else if (!options.targets.empty()) {
    TargetConstraints constraints = TRY(TargetConstraints::parse(options.exclude, options.pin));
    std::vector<PartitionSpecPtr> specs = TRY(select_targets(options.targets, constraints));
    if (is_determined(specs)) return partition_lightly(options, specs, constraints);
  }
  Model model = TRY(load(options));
  if (options.frozen_costs && options.json.empty()) {
    Module module = model.impl().module;
    TRY(apply_history_best(TRY(program_options(options))).run(module));
    return print_module(module);
  }
  RunFacts facts;
  facts.threads = thread_count(options);
  Program program = TRY(compile(model, options, &facts.compile_seconds));
  TRY(print_module(program.impl().report.partitioned));
  if (!options.json.empty())
    TRY(write_json(options.json, report_json(model, program.impl().report, facts)));
  return {};
}

}  // namespace

Command add_partition(CLI::App& app) {
  auto options = std::make_shared<SharedOptions>();
  CLI::App* command = app.add_subcommand("partition", "print the partitioned module as text");
  add_compile_options(*command, *options);
  add_config_option(*command, *options);
  command->add_option("--json", options->json, "write the report here");
  command->get_option("--devices")
      ->description(
          "cpu:0,gpu:0,little=cpu:1: plan on which of these devices values lie, and partition by "
          "device; nothing is compiled");
  command->get_option("--pin")->description(
      "'REGEX=TARGET', with --devices 'REGEX=DEVICE': nodes whose name matches run there");
  return {command, [options] { return partition(*options); }};
}

}  // namespace collage::tool
