#include "partition/by_device.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/printable.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/placement.h"
#include "partition/rewrite.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/op_predicate.h"
#include "passes/devices/plan_devices.h"

namespace collage {

namespace {

std::vector<CandidatePartition> parts_on(const PlannedDevice& device, const DataflowGraph& graph,
                                         const KernelDevices& devices) {
  auto spec = std::make_shared<PartitionSpec>();
  spec->name = spec->compiler = device.constraint().to_string();
  spec->target.kind = spec->name;
  spec->target.device = device.device;
  const auto operators =
      std::make_shared<OpPredicatePartitionRule>("on device", [&](const CallNode& call) {
        const auto found = devices.find(&call);
        return found != devices.end() && found->second == device;
      });
  spec->rule = std::make_shared<MaxCoalescePartitionRule>("by device", operators);
  return all_candidates(graph, spec);
}

}  // namespace

Result<Function> annotate_devices(const Function& function,
                                  const std::shared_ptr<const PartitionSpec>& spec) {
  const DataflowGraph graph(function);
  std::vector<CandidatePartition> candidates = all_candidates(graph, spec);
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.sub_graph.inside().size() > b.sub_graph.inside().size();
  });
  std::unordered_set<const ExprNode*> placed;
  for (const CandidatePartition& candidate : candidates) {
    std::vector<const ExprNode*> calls;
    bool overlaps = false;
    candidate.sub_graph.inside().for_each([&](PostDfsIndex index) {
      if (graph.node(index).expr->kind() != ExprKind::kCall) return;
      calls.push_back(graph.node(index).expr.get());
      overlaps |= placed.count(calls.back()) > 0;
    });
    if (!overlaps) placed.insert(calls.begin(), calls.end());
  }
  const std::string device = DeviceConstraint::exactly(spec->target.device).to_string();
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    if (placed.count(original.get()) == 0 || !original->type().is_tensor()) return rebuilt;
    return make_call("on_device", {rebuilt}, {{"device", device}}, original->origin());
  });
  return rewriter.rewrite(function);
}

Result<DevicePin> DevicePin::parse(std::string_view text) {
  // Devices hold '=' only behind '@', expressions may hold any.
  const size_t equals = text.substr(0, text.rfind('@')).rfind('=');
  if (equals == std::string_view::npos)
    return usage_error("'{}': expected REGEX=DEVICE", printable(std::string(text)));
  return DevicePin{TRY(Regex::parse(text.substr(0, equals))),
                   TRY(DeviceConstraint::parse(text.substr(equals + 1))), std::string(text)};
}

Result<Function> annotate_devices(const Function& function, const std::vector<DevicePin>& pins) {
  std::vector<bool> matched(pins.size(), false);
  Rewriter rewriter([&](const Expr& original, const Expr& rebuilt) -> Result<Expr> {
    if (original->kind() != ExprKind::kCall || !original->type().is_tensor()) return rebuilt;
    for (size_t i = 0; i < pins.size(); ++i) {
      if (!pins[i].origin.found_in(original->origin())) continue;
      matched[i] = true;
      return make_call("on_device", {rebuilt}, {{"device", pins[i].device.to_string()}},
                       original->origin());
    }
    return rebuilt;
  });
  Function annotated = TRY(rewriter.rewrite(function));
  for (size_t i = 0; i < pins.size(); ++i)
    if (!matched[i]) return usage_error("'{}' matches no node", pins[i].text);
  return annotated;
}

Result<Module> partition_by_device(const Module& planned, const DeclaredDevices& devices,
                                   bool all) {
  Module flat = planned;
  for (auto& [name, function] : flat.functions) function = untangle_tuples(function);
  const KernelDevices places = TRY(kernel_devices(flat, devices));
  Module result = flat;
  for (const auto& [name, function] : flat.functions) {
    if (function->attrs.has("Primitive")) continue;
    const DataflowGraph graph(function);
    std::vector<PlannedDevice> used;
    for (const DataflowGraph::Node& node : graph.nodes())
      if (const auto found = places.find(node.expr.get());
          found != places.end() && (all || !(found->second == devices.fallback())) &&
          std::find(used.begin(), used.end(), found->second) == used.end())
        used.push_back(found->second);
    std::vector<CandidatePartition> parts;
    for (const PlannedDevice& device : used)
      for (CandidatePartition& part : parts_on(device, graph, places))
        parts.push_back(std::move(part));
    WriteOptions options;
    options.function = name;
    options.attrs = function->attrs;  // of targets too, which are chosen later
    result = TRY(write_kernels(graph, kernels_to_write(parts), result, options)).module;
  }
  // Functions to be compiled, not kernels.
  for (auto& [name, function] : result.functions)
    if (planned.functions.count(name) == 0)
      function = make_function(function->params, function->body);
  return plan_devices(result, devices);
}

}  // namespace collage
