#include "partition/gather.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

#include "ops/control.h"
#include "ops/placement.h"
#include "partition/stated_kernels.h"
#include "partition/stated_places.h"
#include "partition/stated_targets.h"
#include "passes/devices/device_domains.h"

namespace collage {

namespace {

// Whether a target's kernels run where that says. Scopes are for their encodings.
bool is_at(const Target& target, const DeviceConstraint& place) {
  if (place.device && *place.device != target.device.device) return false;
  if (place.id && *place.id != target.device.id) return false;
  if (!place.target) return true;
  const Result<TargetName> name = TargetName::parse(*place.target);
  return name.ok() && name->means(target);
}

}  // namespace

const std::string& toolchain_of(const PartitionSpec& spec) {
  return spec.compiler.empty() ? spec.target.kind : spec.compiler;
}

std::vector<CandidatePartition> gather_candidates(const DataflowGraph& graph,
                                                  std::span<const PartitionSpecPtr> specs,
                                                  const GatherOptions& options) {
  // Rules must leave alone calls of Primitive functions, and placements; and control flow, which
  // the host alone runs, since it reads conditions.
  const StatedKernels& kernels = graph.stated_kernels();
  const IndexSet& primitives = kernels.primitives();
  IndexSet placements, control;
  for (const DataflowGraph::Node& node : graph.nodes()) {
    if (device_placement(node.expr)) placements.insert(node.index);
    if (const auto* call = as<CallNode>(node.expr); call != nullptr && is_control(*call))
      control.insert(node.index);
  }
  const StatedPlaces& places = graph.stated_places();
  const auto possible = [&](const CandidatePartition& candidate) {
    const IndexSet& inside = candidate.sub_graph.inside();
    const std::string& target = kernels.target(inside.first());
    return (target.empty() || target == candidate.spec->target.to_string()) &&
           (!inside.intersects(primitives) || inside.size() == 1) &&
           !inside.intersects(placements) &&  // no work
           (candidate.spec->is_host || !inside.intersects(control));
  };
  const auto allowed = [&](const CandidatePartition& candidate) {
    bool fits = graph.stated_targets().allow(candidate.spec->target, candidate.sub_graph.inside());
    if (!placements.empty())
      candidate.sub_graph.inside().for_each([&](PostDfsIndex i) {
        fits = fits && places.of(i) && is_at(candidate.spec->target, *places.of(i));
      });
    return fits;
  };

  std::vector<CandidatePartition> result, last_resort;
  std::map<const PartitionRule*, std::vector<CandidatePartition>> known;
  for (size_t s = 0; s < specs.size(); ++s) {
    const PartitionSpecPtr& spec = specs[s];
    size_t users = 0, later = 0;
    for (size_t t = 0; t < specs.size(); ++t) {
      users += specs[t]->rule == spec->rule;
      later += t > s && specs[t]->rule == spec->rule;
    }
    std::vector<CandidatePartition> candidates;
    if (auto it = known.find(spec->rule.get()); it != known.end()) {
      candidates = later > 0 ? it->second : std::move(it->second);
      for (CandidatePartition& candidate : candidates) candidate.spec = spec;
    } else {
      candidates = spec->rule->all_candidates(graph, spec);
      if (users > 1) known[spec->rule.get()] = candidates;
    }
    if (options.primitives && !spec->is_host)
      primitives.for_each([&](PostDfsIndex i) {
        const std::string& compiler = kernels.compiler(i);
        if (!compiler.empty() && compiler != toolchain_of(*spec)) return;
        SubGraph alone =
            SubGraph::of(graph, with_tuple_arguments(graph, IndexSet({i})), "primitive");
        if (alone.is_valid(graph, {})) candidates.push_back({"primitive", std::move(alone), spec});
      });
    for (CandidatePartition& candidate : candidates) {
      if (!possible(candidate)) continue;
      if (allowed(candidate)) {
        result.push_back(std::move(candidate));
      } else if (spec->is_host) {
        last_resort.push_back(std::move(candidate));
      }
    }
  }
  if (last_resort.empty()) return result;
  std::unordered_set<IndexSet, IndexSetHash> taken;
  for (const CandidatePartition& candidate : result) taken.insert(candidate.sub_graph.inside());
  for (CandidatePartition& candidate : last_resort)
    if (!taken.contains(candidate.sub_graph.inside())) result.push_back(std::move(candidate));
  return result;
}

Status check_places(const DataflowGraph& graph, std::span<const PartitionSpecPtr> specs) {
  TRY(graph.stated_targets().status());
  const StatedPlaces& places = graph.stated_places();
  for (const DataflowGraph::Node& node : graph.nodes()) {
    const auto& place = places.of(node.index);
    if (place && place->is_open()) continue;
    const std::string site = site_text(node.expr);
    if (!place)
      return bad_model("{} would have to be on two devices: {} and {}", site,
                       places.contradiction().first.to_string(),
                       places.contradiction().second.to_string());
    if (std::any_of(specs.begin(), specs.end(),
                    [&](const PartitionSpecPtr& spec) { return is_at(spec->target, *place); }))
      continue;
    std::string targets;
    for (const PartitionSpecPtr& spec : specs)
      targets += (targets.empty() ? "" : ", ") + spec->target.to_string();
    return error(ErrorCode::kUnavailable, "{} is to be on {}, where none of the targets is: {}",
                 site, place->to_string(), targets);
  }
  return {};
}

Status check_no_scopes(const DataflowGraph& graph) {
  const StatedPlaces& places = graph.stated_places();
  for (const DataflowGraph::Node& node : graph.nodes()) {
    const auto& place = places.of(node.index);
    if (place && !place->memory_scope.value_or("").empty())
      return unsupported("{} is to be in the memory scope {}, which needs costs of variants",
                         site_text(node.expr), place->to_string());
  }
  for (const auto& [placement, scope] : places.read_in_scope())
    if (!scope.empty())
      return unsupported("{} is to be read in the memory scope {}, which needs costs of variants",
                         site_text(graph.node(placement).expr), scope);
  return {};
}

std::vector<std::vector<size_t>> compatible_targets(
    std::span<const PartitionSpecPtr> specs,
    std::span<const std::pair<std::string, std::string>> incompatible) {
  auto clash = [&](size_t a, size_t b) {
    return std::any_of(incompatible.begin(), incompatible.end(), [&](const auto& pair) {
      return (pair.first == specs[a]->name && pair.second == specs[b]->name) ||
             (pair.first == specs[b]->name && pair.second == specs[a]->name);
    });
  };
  // One pair after the other: sets that hold both are split in two.
  std::vector<std::vector<size_t>> sets(1);
  for (size_t s = 0; s < specs.size(); ++s) sets[0].push_back(s);
  for (size_t a = 0; a < specs.size(); ++a)
    for (size_t b = a + 1; b < specs.size(); ++b) {
      if (!clash(a, b)) continue;
      std::vector<std::vector<size_t>> split;
      for (const std::vector<size_t>& set : sets) {
        bool both = std::count(set.begin(), set.end(), a) && std::count(set.begin(), set.end(), b);
        if (!both) {
          split.push_back(set);
          continue;
        }
        for (size_t out : {b, a}) {
          std::vector<size_t> rest = set;
          std::erase(rest, out);
          split.push_back(std::move(rest));
        }
      }
      sets = std::move(split);
    }
  // Only the largest: one inside another adds nothing.
  std::vector<std::vector<size_t>> result;
  for (size_t i = 0; i < sets.size(); ++i) {
    bool inside = false;
    for (size_t j = 0; j < sets.size(); ++j)
      inside = inside ||
               (i != j &&
                std::includes(sets[j].begin(), sets[j].end(), sets[i].begin(), sets[i].end()) &&
                (sets[i] != sets[j] || j < i));
    if (!inside) result.push_back(sets[i]);
  }
  return result;
}

}  // namespace collage
