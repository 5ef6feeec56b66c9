#include "partition/stated_places.h"

#include "ops/control.h"
#include "ops/placement.h"

namespace collage {

StatedPlaces::StatedPlaces(const DataflowGraph& graph) : places_(graph.size(), DeviceConstraint()) {
  for (const DataflowGraph::Node& node : graph.nodes())
    if (const auto* call = as<CallNode>(node.expr); call != nullptr && is_control(*call))
      control_.insert(node.index);
  for (const DataflowGraph::Node& node : graph.nodes()) {
    const auto placement = device_placement(node.expr);
    if (!placement) continue;
    const auto lies = [&](PostDfsIndex value, const DeviceConstraint& there) {
      if (!there.device) return;
      const VirtualDevice device{*there.device, there.id.value_or(0),
                                 there.memory_scope.value_or("")};
      if (!is_host_memory(device)) at_caller_[value] = device;
    };
    if (node_role(graph, node.inputs[0]) == NodeRole::kVariable)
      lies(node.inputs[0], placement->operand);
    lies(node.index, placement->result);
    join_into(node.inputs[0], placement->operand);
    const auto& place = places_[node.inputs[0]];
    if (place && place->memory_scope) with_scope_.insert(node.inputs[0]);
    DeviceConstraint used = placement->result;
    if (used.memory_scope) read_in_scope_[node.index] = *used.memory_scope;
    used.memory_scope.reset();
    if (!used.is_open()) place_readers(graph, node.index, used);
  }
}

void StatedPlaces::join_into(PostDfsIndex node, const DeviceConstraint& constraint) {
  std::optional<DeviceConstraint>& place = places_[node];
  if (!place || control_.contains(node)) return;
  const auto joined = join(*place, constraint);
  if (!joined) contradiction_ = {*place, constraint};
  place = joined;
}

// Another placement copies the value again.
void StatedPlaces::place_readers(const DataflowGraph& graph, PostDfsIndex value,
                                 const DeviceConstraint& constraint) {
  for (const PostDfsIndex reader : graph.node(value).outputs) {
    const Expr& expr = graph.node(reader).expr;
    if (expr->kind() == ExprKind::kTuple || expr->kind() == ExprKind::kTupleGetItem) {
      place_readers(graph, reader, constraint);
    } else if (!device_placement(expr)) {
      join_into(reader, constraint);
    }
  }
}

bool StatedPlaces::hold(const DataflowGraph& graph, const SubGraph& kernel,
                        const std::vector<Encoding>& inputs,
                        const std::vector<Encoding>& outputs) const {
  if (!state_scopes() || kernel.inside().intersects(control_)) return true;
  bool holds = true;
  size_t leaf = 0;
  kernel.exit().for_each([&](PostDfsIndex exit) {
    const size_t leaves = graph.node(exit).expr->type().leaves().size();
    for (size_t end = leaf + leaves; leaf < end; ++leaf)
      holds = holds && (!with_scope_.contains(exit) ||
                        outputs[leaf].device.memory_scope == *places_[exit]->memory_scope);
  });
  leaf = 0;
  kernel.input().for_each([&](PostDfsIndex input) {
    const auto stated = read_in_scope_.find(input);
    holds = holds &&
            (stated == read_in_scope_.end() || inputs[leaf].device.memory_scope == stated->second);
    leaf += graph.node(input).expr->type().leaves().size();
  });
  return holds;
}

}  // namespace collage
