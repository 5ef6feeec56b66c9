#include "choose/candidates.h"

#include <optional>

#include "partition/gather.h"
#include "partition/rewrite.h"
#include "passes/devices/device_numbers.h"

namespace collage {

bool is_allowed(const DataflowGraph& graph, const CandidatePartition& candidate,
                const TargetConstraints& constraints) {
  bool allowed = true;
  candidate.sub_graph.inside().for_each([&](size_t index) {
    if (const auto* call = as<CallNode>(graph.node(index).expr))
      allowed = allowed && constraints.allows(candidate.spec->target, *call);
  });
  return allowed;
}

Result<std::vector<CandidatePartition>> gather_candidates(
    const DataflowGraph& graph, const std::vector<PartitionSpecPtr>& specs,
    const TargetConstraints& constraints) {
  TRY(check_places(graph, specs));
  GatherOptions options;
  options.primitives = true;
  options.allowed = [&](const CandidatePartition& candidate) {
    return is_allowed(graph, candidate, constraints);
  };
  return gather_candidates(graph, specs, options);
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
  result.module = TRY(with_device_numbers(module, result.devices));
  result.graph = std::make_shared<const DataflowGraph>(untangle_tuples(result.module.main()));
  result.found = TRY(gather_candidates(*result.graph, result.specs, result.constraints));
  return result;
}

}  // namespace collage
