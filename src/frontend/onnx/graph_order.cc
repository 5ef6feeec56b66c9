#include "frontend/onnx/graph_order.h"

#include <algorithm>
#include <unordered_map>

namespace collage::frontend {

namespace {

constexpr size_t kGiven = ~size_t{0};

// Names in a graph inside an attribute may refer to values outside it: those are inputs of the node
// too. A name that the graph, or one around it in `scopes`, defines is not.
void outer_names(const ::onnx::GraphProto& graph,
                 std::vector<std::unordered_set<std::string>>& scopes,
                 std::vector<const std::string*>& names) {
  scopes.push_back(own_names(graph));
  const auto add = [&](const std::string& name) {
    const bool own = std::any_of(scopes.begin(), scopes.end(),
                                 [&](const auto& inside) { return inside.count(name) != 0; });
    if (!name.empty() && !own) names.push_back(&name);
  };
  for (const auto& output : graph.output()) add(output.name());
  for (const auto& node : graph.node()) {
    for (const auto& name : node.input()) add(name);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) outer_names(attribute.g(), scopes, names);
      for (const auto& nested : attribute.graphs()) outer_names(nested, scopes, names);
    }
  }
  scopes.pop_back();
}

// The error for nodes that wait for each other: follows unordered predecessors from `start` until
// one comes again.
Status cycle_error(const FlatGraph& graph, const std::vector<std::vector<size_t>>& predecessors,
                   const std::vector<bool>& ordered, size_t start) {
  std::vector<size_t> path;
  std::unordered_map<size_t, size_t> place;
  size_t node = start;
  while (place.emplace(node, path.size()).second) {
    path.push_back(node);
    for (size_t next : predecessors[node])
      if (next != kGiven && !ordered[next]) {
        node = next;
        break;
      }
  }
  std::string text;
  const size_t first = place[node];
  constexpr size_t kShown = 8;
  for (size_t i = path.size(); i-- > first;) {
    if (path.size() - i > kShown) {
      text += fmt::format("… {} more -> ", i - first + 1);
      break;
    }
    text += describe(graph.nodes[path[i]]) + " -> ";
  }
  return bad_model("the graph has a cycle: {}{}", text, describe(graph.nodes[path.back()]));
}

}  // namespace

std::vector<const std::string*> used_names(const ::onnx::NodeProto& node) {
  std::vector<const std::string*> names;
  for (const auto& name : node.input())
    if (!name.empty()) names.push_back(&name);
  std::vector<std::unordered_set<std::string>> scopes;
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) outer_names(attribute.g(), scopes, names);
    for (const auto& graph : attribute.graphs()) outer_names(graph, scopes, names);
  }
  return names;
}

Result<std::vector<size_t>> import_order(const FlatGraph& graph,
                                         const std::unordered_set<std::string>& given,
                                         const std::vector<std::string>& outputs) {
  std::unordered_map<std::string, size_t> producer;
  for (const std::string& name : given) producer[name] = kGiven;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& name : graph.nodes[i].proto->output()) {
      if (name.empty()) continue;
      auto [it, fresh] = producer.emplace(name, i);
      if (fresh) continue;
      if (it->second == kGiven)
        return bad_model("{}: output '{}' is also an input or initializer of the graph",
                         describe(graph.nodes[i]), name);
      return bad_model("{}: output '{}' is already an output of {}", describe(graph.nodes[i]), name,
                       describe(graph.nodes[it->second]));
    }

  std::vector<std::vector<size_t>> predecessors(graph.nodes.size());
  std::vector<std::vector<size_t>> successors(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string* name : used_names(*graph.nodes[i].proto)) {
      auto it = producer.find(*name);
      if (it == producer.end())
        return bad_model("{}: input '{}' is no output of a node, input or initializer",
                         describe(graph.nodes[i]), *name);
      if (it->second == kGiven) continue;
      predecessors[i].push_back(it->second);
      successors[it->second].push_back(i);
    }

  // Kahn's algorithm; a heap keeps the file's order where there is a choice.
  std::vector<size_t> missing(graph.nodes.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    missing[i] = predecessors[i].size();
    if (missing[i] == 0) ready.push_back(i);
  }
  std::make_heap(ready.begin(), ready.end(), std::greater<>());
  std::vector<size_t> order;
  std::vector<bool> ordered(graph.nodes.size(), false);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const size_t node = ready.back();
    ready.pop_back();
    order.push_back(node);
    ordered[node] = true;
    for (size_t next : successors[node])
      if (--missing[next] == 0) {
        ready.push_back(next);
        std::push_heap(ready.begin(), ready.end(), std::greater<>());
      }
  }
  if (order.size() != graph.nodes.size()) {
    const size_t start =
        static_cast<size_t>(std::find(ordered.begin(), ordered.end(), false) - ordered.begin());
    return cycle_error(graph, predecessors, ordered, start);
  }

  std::vector<bool> needed(graph.nodes.size(), false);
  for (const std::string& name : outputs) {
    auto it = producer.find(name);
    if (it == producer.end())
      return bad_model("output '{}' is no output of a node, input or initializer", name);
    if (it->second != kGiven) needed[it->second] = true;
  }
  for (size_t i = order.size(); i-- > 0;)
    if (needed[order[i]])
      for (size_t previous : predecessors[order[i]]) needed[previous] = true;
  std::erase_if(order, [&](size_t node) { return !needed[node]; });
  return order;
}

}  // namespace collage::frontend
