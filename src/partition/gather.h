// From specs to candidates: every rule is evaluated once, however many specs share it, and what no
// plan may contain is left out.
//
//   a function already marked Primitive is somebody's decision (a user's own fusion): its call is
//   never a part of a larger kernel, and is one of its own where `primitives` asks for that;
//   what on_device or device_copy places somewhere is only for targets there. They say nothing of
//   what the node reads or of who reads it: that is for costs to decide. A memory scope that they
//   state is for the search, which knows variants (stated_places.h);
//   the host has all the same what no other target takes by itself.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "partition/rules/rule.h"

namespace collage {

using PartitionSpecPtr = std::shared_ptr<const PartitionSpec>;

struct GatherOptions {
  // Whether calls of Primitive functions are candidates too, one call each, of every target but the
  // host (or of the one that they state: stated_kernels.h).
  bool primitives = false;
  std::function<bool(const CandidatePartition&)> allowed;  // refuses candidates; empty: none
};

// What a "Compiler" attribute calls the target's toolchain: the compiler or, where kernels are the
// project's own, the kind of target.
const std::string& toolchain_of(const PartitionSpec& spec);

std::vector<CandidatePartition> gather_candidates(const DataflowGraph& graph,
                                                  std::span<const PartitionSpecPtr> specs,
                                                  const GatherOptions& options = {});

// Whether each placed node can be where placements say. kBadModel where two contradict each other;
// kUnavailable where none of the specs' targets is there.
Status check_places(const DataflowGraph& graph, std::span<const PartitionSpecPtr> specs);
// kUnsupported where placements state a memory scope: for partitioning without variants.
Status check_no_scopes(const DataflowGraph& graph);

// Sets of targets (indices into `specs`) that may be used together, each as large as it can be:
// those without a pair that is declared incompatible, by name.
std::vector<std::vector<size_t>> compatible_targets(
    std::span<const PartitionSpecPtr> specs,
    std::span<const std::pair<std::string, std::string>> incompatible);

}  // namespace collage
