// From specs to candidates: every rule is evaluated once, however many specs share it, and what no
// plan may contain is left out.
//
//   a function already marked Primitive is somebody's decision (a user's own fusion): its call is
//   never a part of a larger kernel, and is one of its own where `primitives` asks for that;
//   what on_device places somewhere is only for targets on that device.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "partition/rules/rule.h"

namespace collage {

using PartitionSpecPtr = std::shared_ptr<const PartitionSpec>;

struct GatherOptions {
  // Whether calls of Primitive functions are candidates too, one call each, of every target but the
  // host (or of the one that their "Compiler" names).
  bool primitives = false;
  std::function<bool(const CandidatePartition&)> allowed;  // refuses candidates; empty: none
};

std::vector<CandidatePartition> gather_candidates(const DataflowGraph& graph,
                                                  std::span<const PartitionSpecPtr> specs,
                                                  const GatherOptions& options = {});

// Whether a kernel for `target` may run what is to run on `place`: on the same device, and where
// the place has a memory scope or a kind, with the same.
bool refines(const Target& target, const Target& place);
// The device of each node, none where it was left open: what on_device places, and what is only
// used by nodes of one device, up to the next on_device (RFC 0038 unifies domains the same way).
std::vector<std::optional<VirtualDevice>> plan_devices(const DataflowGraph& graph);

// Sets of targets (indices into `specs`) that may be used together, each as large as it can be:
// those without a pair that is declared incompatible, by name.
std::vector<std::vector<size_t>> compatible_targets(
    std::span<const PartitionSpecPtr> specs,
    std::span<const std::pair<std::string, std::string>> incompatible);

}  // namespace collage
