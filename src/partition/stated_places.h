// What placements around a node (on_device, device_copy) say of where it is computed, and of the
// memory scope in which it leaves its result. A placement is no part of a kernel, so that the node
// it holds for is an exit of whichever kernel computes it.
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
  // Nullopt where placements contradict each other.
  const std::optional<DeviceConstraint>& of(PostDfsIndex node) const { return places_[node]; }
  // The last two that do.
  const std::pair<DeviceConstraint, DeviceConstraint>& contradiction() const {
    return contradiction_;
  }
  // Nodes whose memory scope is stated.
  const IndexSet& with_scope() const { return with_scope_; }
  // Whether each of these leaves of a kernel's result, those of its exits in order, is in the scope
  // that is stated of it.
  bool hold(const DataflowGraph& graph, const IndexSet& exits,
            const std::vector<Encoding>& outputs) const;

 private:
  std::vector<std::optional<DeviceConstraint>> places_;
  std::pair<DeviceConstraint, DeviceConstraint> contradiction_;
  IndexSet with_scope_;
};

}  // namespace collage
