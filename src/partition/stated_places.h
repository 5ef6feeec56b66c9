// Placements around nodes (on_device, device_copy): where a node is computed, and the memory scope
// of its result. A placement is no part of a kernel, so its node is an exit of any kernel that
// computes it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/device_constraint.h"
#include "partition/dataflow_graph.h"

namespace collage {

class StatedPlaces {
 public:
  explicit StatedPlaces(const DataflowGraph& graph);
  // Returns nullopt if placements contradict each other.
  const std::optional<DeviceConstraint>& of(PostDfsIndex node) const { return places_[node]; }
  // The last two that contradict each other.
  const std::pair<DeviceConstraint, DeviceConstraint>& contradiction() const {
    return contradiction_;
  }
  // Nodes whose memory scope is stated.
  const IndexSet& with_scope() const { return with_scope_; }
  // Returns whether each leaf of a kernel's result, those of its exits in order, is in the scope
  // that is stated for it.
  bool hold(const DataflowGraph& graph, const IndexSet& exits,
            const std::vector<Encoding>& outputs) const;

 private:
  std::vector<std::optional<DeviceConstraint>> places_;
  std::pair<DeviceConstraint, DeviceConstraint> contradiction_;
  IndexSet with_scope_;
};

}  // namespace collage
