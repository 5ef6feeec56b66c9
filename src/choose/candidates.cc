#include "choose/candidates.h"

#include <optional>

#include "base/log.h"
#include "partition/gather.h"
#include "partition/rewrite.h"
#include "passes/devices/device_numbers.h"

namespace collage {

const std::vector<size_t>* TargetChoice::set_with(const std::set<Target>& targets) const {
  if (compatible.size() < 2) return nullptr;
  const auto found = std::find_if(compatible.begin(), compatible.end(), [&](const auto& set) {
    return std::all_of(targets.begin(), targets.end(),
                       [&](const Target& target) { return is_in(set, target); });
  });
  return found != compatible.end() ? &*found : nullptr;
}

Result<std::vector<CandidatePartition>> checked_candidates(
    const DataflowGraph& graph, const std::vector<PartitionSpecPtr>& specs) {
  TRY(check_places(graph, specs));
  return gather_candidates(graph, specs, {.primitives = true});
}

namespace {

// Those that say so of themselves.
std::vector<std::pair<std::string, std::string>> conflicting(
    const std::vector<PartitionSpecPtr>& specs) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t a = 0; a < specs.size(); ++a)
    for (size_t b = a + 1; b < specs.size(); ++b) {
      const std::string reason =
          why_apart(*find_backend(specs[a]->target.kind), *find_backend(specs[b]->target.kind));
      if (reason.empty()) continue;
      log::info("{} and {} are kept apart: {}", specs[a]->name, specs[b]->name, reason);
      pairs.emplace_back(specs[a]->name, specs[b]->name);
    }
  return pairs;
}

}  // namespace

Result<TargetChoice> choose_targets(const ProgramOptions& options) {
  TargetChoice result;
  result.devices = TRY(parse_devices_flag(options.devices));
  const DeclaredDevices& devices = result.devices;
  result.constraints = TRY(TargetConstraints::parse(options.exclude, options.pin, devices));
  std::optional<PartitionConfig> config;
  if (!options.config.empty()) config = TRY(read_config(options.config));
  result.specs = config ? TRY(configured_targets(*config, result.constraints, devices))
                        : TRY(select_targets(options.targets, result.constraints, devices));
  std::vector<std::pair<std::string, std::string>> apart = conflicting(result.specs);
  if (config) result.memory_weight = config->memory_weight;
  if (config) apart.insert(apart.end(), config->incompatible.begin(), config->incompatible.end());
  result.compatible = compatible_targets(result.specs, apart);
  return result;
}

Result<Candidates> find_candidates(const Module& module, const ProgramOptions& options) {
  Candidates result{TRY(choose_targets(options)), {}, {}, {}};
  result.module = result.constraints.annotated(TRY(with_device_numbers(module, result.devices)));
  result.graph = std::make_shared<const DataflowGraph>(untangle_tuples(result.module.main()));
  result.found = TRY(checked_candidates(*result.graph, result.specs));
  return result;
}

}  // namespace collage
