#include "partition/stated_places.h"

#include "ops/placement.h"

namespace collage {

StatedPlaces::StatedPlaces(const DataflowGraph& graph) : places_(graph.size(), DeviceConstraint()) {
  for (const DataflowGraph::Node& node : graph.nodes()) {
    const auto placement = device_placement(node.expr);
    if (!placement) continue;
    std::optional<DeviceConstraint>& place = places_[node.inputs[0]];
    if (!place) continue;
    const auto joined = join(*place, placement->operand);
    if (!joined) contradiction_ = {*place, placement->operand};
    place = joined;
    if (place && place->memory_scope) with_scope_.insert(node.inputs[0]);
  }
}

bool StatedPlaces::hold(const DataflowGraph& graph, const IndexSet& exits,
                        const std::vector<Encoding>& outputs) const {
  if (with_scope_.empty()) return true;
  bool holds = true;
  size_t leaf = 0;
  exits.for_each([&](PostDfsIndex exit) {
    const size_t leaves = graph.node(exit).expr->type().leaves().size();
    for (size_t end = leaf + leaves; leaf < end; ++leaf)
      holds = holds && (!with_scope_.contains(exit) ||
                        outputs[leaf].device.memory_scope == *places_[exit]->memory_scope);
  });
  return holds;
}

}  // namespace collage
