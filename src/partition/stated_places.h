// Placements (on_device, device_copy): where their operand is computed and what reads their result,
// and the memory scopes of both. A placement is no part of a kernel, so its operand is an exit of
// any kernel that computes it, and its result an input of any that reads it. Control flow is the
// host's, whatever is stated: what it takes and gives is copied.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/device_constraint.h"
#include "partition/sub_graph.h"

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
  // Nodes whose memory scope is stated: where they are made, and placements as they are read.
  bool state_scopes() const { return !with_scope_.empty() || !read_in_scope_.empty(); }
  const std::map<PostDfsIndex, std::string>& read_in_scope() const { return read_in_scope_; }
  // Where the caller has a parameter, by what placements state of their operand, or wants a result,
  // by what they state of theirs; on the host where nothing is stated.
  VirtualDevice at_caller(PostDfsIndex node) const {
    const auto stated = at_caller_.find(node);
    return stated == at_caller_.end() ? VirtualDevice() : stated->second;
  }
  // Returns whether each tensor that a kernel takes and gives is in the scope that is stated for
  // it.
  bool hold(const DataflowGraph& graph, const SubGraph& kernel, const std::vector<Encoding>& inputs,
            const std::vector<Encoding>& outputs) const;

 private:
  std::vector<std::optional<DeviceConstraint>> places_;
  std::pair<DeviceConstraint, DeviceConstraint> contradiction_;
  void join_into(PostDfsIndex node, const DeviceConstraint& constraint);
  void place_readers(const DataflowGraph& graph, PostDfsIndex value,
                     const DeviceConstraint& constraint);

  IndexSet control_, with_scope_;
  std::map<PostDfsIndex, std::string> read_in_scope_;
  std::map<PostDfsIndex, VirtualDevice> at_caller_;  // in memory that is not the host's
};

}  // namespace collage
