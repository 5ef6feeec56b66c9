#include "frontend/onnx/staged/subgraphs.h"

#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "frontend/onnx/graph_order.h"

namespace collage::frontend {

Result<const ::onnx::GraphProto*> graph_attribute(const ::onnx::NodeProto& node,
                                                  const std::string& name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name && attribute.has_g()) return &attribute.g();
  return bad_model("attribute '{}' is missing or is no graph", name);
}

FlatNode identity_node(const std::string& from, const std::string& to, const FlatNode& like) {
  auto proto = std::make_shared<::onnx::NodeProto>();
  proto->set_op_type("Identity");
  proto->add_input(from);
  proto->add_output(to);
  return {std::move(proto), like.opset, like.label};
}

Result<InlinedGraph> inline_graph(const Inlining& inlining, const FlatNode& node,
                                  const std::string& attribute, const std::string& prefix) {
  // The nodes of the flat graph keep the copy alive that they point into.
  auto graph = std::make_shared<::onnx::GraphProto>(*TRY(graph_attribute(*node.proto, attribute)));
  if (graph->sparse_initializer_size() > 0)
    return unsupported("sparse initializer '{}'", graph->sparse_initializer(0).values().name());
  InlinedGraph result;
  std::unordered_map<std::string, std::string> names;
  const auto define = [&](const std::string& name) -> Status {
    if (name.empty()) return bad_model("a value inside '{}' has no name", attribute);
    if (!names.emplace(name, prefix + name).second)
      return bad_model("'{}' is defined twice inside '{}'", name, attribute);
    return {};
  };
  for (const auto& input : graph->input()) {
    TRY(define(input.name()));
    result.inputs.push_back(prefix + input.name());
  }
  for (auto& tensor : *graph->mutable_initializer()) {
    // Before IR version 4 initializers were listed as inputs too.
    if (names.count(tensor.name()) != 0)
      return unsupported("initializer '{}' of '{}' is an input too", tensor.name(), attribute);
    TRY(define(tensor.name()));
    result.initializers.emplace_back(prefix + tensor.name(), std::move(tensor));
  }
  for (const auto& inner : graph->node())
    for (const auto& name : inner.output())
      if (!name.empty()) TRY(define(name));
  const Rename rename = [&](std::string* name) {
    if (auto it = names.find(*name); it != names.end()) *name = it->second;
  };
  for (auto& inner : *graph->mutable_node()) rename_values(inner, rename);
  for (auto& output : *graph->mutable_output()) {
    rename(output.mutable_name());
    result.outputs.push_back(output.name());
  }

  FlatGraph flat = TRY(flatten(inlining, *graph, node.opset, node.label));
  std::unordered_set<std::string> made, given;
  for (const FlatNode& inner : flat.nodes)
    made.insert(inner.proto->output().begin(), inner.proto->output().end());
  // What no node inside makes is an input, an initializer or comes from outside.
  for (const FlatNode& inner : flat.nodes)
    for (const std::string* name : used_names(*inner.proto))
      if (made.count(*name) == 0) given.insert(*name);
  for (const std::string& name : result.outputs)
    if (made.count(name) == 0) given.insert(name);
  for (size_t i : TRY(import_order(flat, given, result.outputs))) {
    FlatNode& inner = flat.nodes[i];
    inner.proto = {
        std::make_shared<
            std::pair<std::shared_ptr<::onnx::GraphProto>, std::shared_ptr<::onnx::NodeProto>>>(
            graph, inner.proto),
        inner.proto.get()};
    result.nodes.push_back(std::move(inner));
  }
  return result;
}

}  // namespace collage::frontend
