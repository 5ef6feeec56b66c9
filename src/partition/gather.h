// Gathers candidates of specs: evaluates every rule once, however many specs share it, and leaves
// out what no plan may contain.
//
//   A function marked Primitive is a kernel of the user: its call is never a part of a larger
//   kernel, and is a candidate of its own if `primitives` asks for that.
//   A node that on_device or device_copy places is only for targets there, and so is what reads a
//   result that they place. Costs decide of all others. The search handles memory scopes that they
//   state, since it knows variants (stated_places.h).
//   A target has no kernel that the function keeps it away from (stated_targets.h).
//   The host also gets what no other target takes alone.
#pragma once

#include <span>
#include <vector>

#include "partition/rules/rule.h"

namespace collage {

using PartitionSpecPtr = std::shared_ptr<const PartitionSpec>;

struct GatherOptions {
  // Makes calls of Primitive functions candidates too, one call each, of every target but the host
  // (or of the one that they state: stated_kernels.h).
  bool primitives = false;
};

// The toolchain's name in a "Compiler" attribute: the compiler or, for the project's own kernels,
// the kind of target.
const std::string& toolchain_of(const PartitionSpec& spec);

std::vector<CandidatePartition> gather_candidates(const DataflowGraph& graph,
                                                  std::span<const PartitionSpecPtr> specs,
                                                  const GatherOptions& options = {});

// Checks that each placed node can be there. kBadModel: two placements contradict each other, or
// what is stated of targets cannot be read; kUnavailable: no spec has a target there.
Status check_places(const DataflowGraph& graph, std::span<const PartitionSpecPtr> specs);
// kUnsupported: a placement states a memory scope, which partitioning without variants cannot
// honour.
Status check_no_scopes(const DataflowGraph& graph);

// Returns sets of targets (indices into `specs`) that may be used together, each as large as
// possible: without a pair that is declared incompatible, by name.
std::vector<std::vector<size_t>> compatible_targets(
    std::span<const PartitionSpecPtr> specs,
    std::span<const std::pair<std::string, std::string>> incompatible);

}  // namespace collage
