#include "choose/candidates.h"

#include <optional>

#include "partition/gather.h"
#include "partition/rewrite.h"
#include "passes/devices/device_numbers.h"

namespace collage {

Result<std::vector<CandidatePartition>> checked_candidates(
    const DataflowGraph& graph, const std::vector<PartitionSpecPtr>& specs) {
  TRY(check_places(graph, specs));
  return gather_candidates(graph, specs, {.primitives = true});
}

Result<TargetChoice> choose_targets(const ProgramOptions& options) {
  TargetChoice result;
  result.devices = TRY(parse_devices_flag(options.devices));
  const DeclaredDevices& devices = result.devices;
  result.constraints = TRY(TargetConstraints::parse(options.exclude, options.pin, devices));
  std::optional<PartitionConfig> config;
  if (!options.config.empty()) config = TRY(read_config(options.config));
  result.specs = config ? TRY(configured_targets(*config, result.constraints, devices))
                        : TRY(select_targets(options.targets, result.constraints, devices));
  result.compatible = compatible_targets(
      result.specs, config ? config->incompatible : PartitionConfig().incompatible);
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
