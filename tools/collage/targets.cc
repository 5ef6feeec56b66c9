// collage targets: what this machine offers, versions, and what is missing and why.

#include <fmt/format.h>

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "options.h"

namespace collage::tool {

namespace {

Status targets() {
  register_all();
  fmt::print("{}, {} cores for this process\n", processor_name(), ThreadTeam::available_cores());
  for (Backend* backend : all_backends()) {
    Status available = backend->available();
    fmt::print("{:<10} {:<12} {}{}\n", backend->name(),
               available.ok() ? "available" : "unavailable", backend->traits().version,
               available.ok() ? "" : "  " + available.message());
    if (const auto operators = backend->traits().loses_nan; !operators.empty())
      fmt::print("{:<10} may lose NaN in {}\n", "", fmt::join(operators, ", "));
    if (const std::string algorithms = backend->traits().spreads_nan; !algorithms.empty())
      fmt::print("{:<10} may spread NaN and infinity by {}\n", "", algorithms);
    for (const VirtualDevice& device : backend->traits().devices)
      if (!is_host_memory(device)) fmt::print("{:<10} device {}\n", "", device_text(device));
  }
  for (const MissingBackend& missing : missing_backends())
    fmt::print("{:<10} {:<12} install {}\n", missing.name, "not built", missing.remedy);
  return {};
}

}  // namespace

Command add_targets(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("targets", "what this machine offers, and what is missing and why");
  auto plugins = std::make_shared<std::vector<std::string>>();
  command->add_option("--plugin", *plugins, "a shared library with a backend of its own")
      ->allow_extra_args(false);
  return {command, [plugins]() -> Status {
            for (const std::string& plugin : *plugins) TRY(load_plugin(plugin));
            return targets();
          }};
}

}  // namespace collage::tool
