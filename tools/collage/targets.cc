// collage targets: what this machine offers, versions, and what is missing and why.

#include <fmt/format.h>

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "options.h"

namespace collage::tool {

namespace {

// The kinds of kernels that may do so.
std::vector<std::string> spreading_nan(const Backend& backend) {
  std::vector<std::string> names;
  for (const KernelRow& row : backend.traits().kernels)
    if (row.spreads_nan) names.push_back(row.name);
  return names;
}

// What has to be said for a compilation to use such kernels.
std::string_view allowed_by(const KernelRow& row) {
  const RoundingLimit limit = row.rounding.limit();
  if (limit == RoundingLimit::kAny) return "max-error";
  return limit == RoundingLimit::kDefault || row.spreads_nan ? "not strict" : "always";
}

// What a kernel multiplies, and how often for each multiplication of its operators.
std::string text_of(const Work& work) {
  if (work.in_place) return "nothing";
  return work.multiplications == 1 ? work.unit
                                   : fmt::format("{} x{:.3g}", work.unit, work.multiplications);
}

void print_kernels(const Backend& backend) {
  fmt::print("{}\n", backend.name());
  for (const KernelRow& row : backend.traits().kernels) {
    fmt::print("  {:<24} {:<15} {:<10} {}\n", row.name, text_of(row.work), allowed_by(row),
               row.computes);
    if (!row.isa.empty()) fmt::print("  {:<24} needs {}\n", "", row.isa);
    if (!row.tile.empty()) fmt::print("  {:<24} variants: {}\n", "", row.tile);
  }
}

Status kernels() {
  register_all();
  fmt::print("  {:<24} {:<15} {:<10} {}\n", "kernels", "multiply", "allowed", "compute");
  for (Backend* backend : all_backends()) print_kernels(*backend);
  return {};
}

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
    if (const std::vector<std::string> names = spreading_nan(*backend); !names.empty())
      fmt::print("{:<10} may spread NaN and infinity by {}\n", "", fmt::join(names, ", "));
    for (Backend* other : all_backends())
      if (const std::string reason = why_apart(*backend, *other); !reason.empty())
        fmt::print("{:<10} in no program with {}: {}\n", "", other->name(), reason);
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
  auto what = std::make_shared<std::string>();
  command->add_option("WHAT", *what, "`kernels`: the kinds of kernels that each backend has")
      ->check(CLI::IsMember({"kernels"}));
  command->add_option("--plugin", *plugins, "a shared library with a backend of its own")
      ->allow_extra_args(false);
  return {command, [plugins, what]() -> Status {
            for (const std::string& plugin : *plugins) TRY(load_plugin(plugin));
            return what->empty() ? targets() : kernels();
          }};
}

}  // namespace collage::tool
