#include "frontend/onnx/inlining.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace collage::frontend {

namespace {

using ::onnx::GraphProto;
using ::onnx::NodeProto;

using Scopes =
    std::vector<std::unordered_set<std::string>>;  // of the graphs around, outermost first

// What a name becomes that stands in a graph with these around it: one of their own is prefixed.
// Depth is limited (kMaxGraphDepth).
void rename_inside(GraphProto& graph, Scopes& scopes, const Rename& rename,
                   const std::string& prefix) {
  scopes.push_back(own_names(graph));
  const auto rename_one = [&](std::string* name) {
    if (name->empty()) return;
    const bool own = std::any_of(scopes.begin(), scopes.end(),
                                 [&](const auto& names) { return names.count(*name) != 0; });
    if (own)
      name->insert(0, prefix);
    else
      rename(name);
  };
  for (auto& input : *graph.mutable_input()) rename_one(input.mutable_name());
  for (auto& output : *graph.mutable_output()) rename_one(output.mutable_name());
  for (auto& tensor : *graph.mutable_initializer()) rename_one(tensor.mutable_name());
  for (auto& tensor : *graph.mutable_sparse_initializer())
    rename_one(tensor.mutable_values()->mutable_name());
  for (auto& node : *graph.mutable_node()) {
    for (auto& name : *node.mutable_input()) rename_one(&name);
    for (auto& name : *node.mutable_output()) rename_one(&name);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_inside(*attribute.mutable_g(), scopes, rename, prefix);
      for (auto& nested : *attribute.mutable_graphs())
        rename_inside(nested, scopes, rename, prefix);
    }
  }
  scopes.pop_back();
}

// Calls f with all names of values in the model.
template <typename F>
void each_name(const ::onnx::ModelProto& model, const F& f) {
  std::vector<const GraphProto*> graphs = {&model.graph()};
  const auto nodes_of = [&](const auto& graph) {
    for (const NodeProto& node : graph.node()) {
      for (const auto& name : node.input()) f(name);
      for (const auto& name : node.output()) f(name);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) graphs.push_back(&attribute.g());
        for (const auto& nested : attribute.graphs()) graphs.push_back(&nested);
      }
    }
  };
  for (const auto& function : model.functions()) {
    for (const auto& name : function.input()) f(name);
    for (const auto& name : function.output()) f(name);
    nodes_of(function);
  }
  while (!graphs.empty()) {
    const GraphProto* graph = graphs.back();
    graphs.pop_back();
    for (const auto& input : graph->input()) f(input.name());
    for (const auto& output : graph->output()) f(output.name());
    for (const auto& tensor : graph->initializer()) f(tensor.name());
    for (const auto& tensor : graph->sparse_initializer()) f(tensor.values().name());
    nodes_of(*graph);
  }
}

constexpr char kMark = '#', kMore = '+';

// "#", or where names hold that, "#+" with one "+" more than follow a "#" in any name. It overlaps
// with no copy of itself, so it is found in a name only where it was put.
std::string mark_of(const ::onnx::ModelProto& model) {
  size_t more = 0;
  each_name(model, [&](std::string_view name) {
    for (size_t at = name.find(kMark); at != name.npos; at = name.find(kMark, at + 1)) {
      const size_t end = std::min(name.find_first_not_of(kMore, at + 1), name.size());
      more = std::max(more, end - at);
    }
  });
  return kMark + std::string(more, kMore);
}

}  // namespace

Inlining::Inlining(const ::onnx::ModelProto& model) : mark_(mark_of(model)) {
  for (const auto& function : model.functions())
    functions_[{function.domain(), function.name(), function.overload()}] = &function;
}

const ::onnx::FunctionProto* Inlining::function_of(const NodeProto& node) const {
  auto it = functions_.find({node.domain(), node.op_type(), node.overload()});
  return it == functions_.end() ? nullptr : it->second;
}

std::string Inlining::inner_prefix(const NodeProto& node) const {
  const auto named = std::find_if(node.output().begin(), node.output().end(),
                                  [](const std::string& name) { return !name.empty(); });
  return (named == node.output().end() ? "" : *named) + mark_;
}

std::unordered_set<std::string> own_names(const GraphProto& graph) {
  std::unordered_set<std::string> own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) own.insert(tensor.values().name());
  for (const auto& node : graph.node())
    for (const auto& name : node.output()) own.insert(name);
  return own;
}

void rename_values(NodeProto& node, const Rename& rename, const std::string& inner_prefix) {
  for (auto& name : *node.mutable_input())
    if (!name.empty()) rename(&name);
  for (auto& name : *node.mutable_output())
    if (!name.empty()) rename(&name);
  Scopes scopes;
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) rename_inside(*attribute.mutable_g(), scopes, rename, inner_prefix);
    for (auto& graph : *attribute.mutable_graphs())
      rename_inside(graph, scopes, rename, inner_prefix);
  }
}

}  // namespace collage::frontend
