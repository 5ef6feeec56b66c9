// The first stage of a compilation: the model as its targets want it, and what each of them could
// take of it.
#pragma once

#include <collage/collage.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "backend/targets/targets.h"
#include "partition/candidate.h"

namespace collage {

// What options say of targets.
struct TargetChoice {
  DeclaredDevices devices;                      // --devices
  TargetConstraints constraints;                // --exclude and --pin
  std::vector<PartitionSpecPtr> specs;          // the targets with their rules, the host last
  std::vector<std::vector<size_t>> compatible;  // sets of specs that may meet in one cover
  double memory_weight = 0;                     // of a configuration

  // The first set with all of these targets, but for the host; null: there is none, or one set.
  const std::vector<size_t>* set_with(const std::set<Target>& targets) const;
  bool is_in(const std::vector<size_t>& set, const Target& target) const {
    return std::any_of(set.begin(), set.end(),
                       [&](size_t spec) { return specs[spec]->target == target; });
  }
};

// kUsage, kUnavailable: targets, a configuration or constraints that do not fit this machine.
Result<TargetChoice> choose_targets(const ProgramOptions& options);

struct Candidates : TargetChoice {
  Module module;  // with numbers for names of devices, and the constraints as annotations
  std::shared_ptr<const DataflowGraph> graph;  // of its @main
  std::vector<CandidatePartition> found;
};

// Errors are those of choose_targets and checked_candidates.
Result<Candidates> find_candidates(const Module& module, const ProgramOptions& options);

// What the specs find in a graph, calls of Primitive functions included. Errors are those of
// check_places.
Result<std::vector<CandidatePartition>> checked_candidates(
    const DataflowGraph& graph, const std::vector<PartitionSpecPtr>& specs);

}  // namespace collage
