#include "frontend/onnx/functions.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/model_file.h"

namespace collage::frontend {

namespace {

using ::onnx::AttributeProto;
using ::onnx::FunctionProto;
using ::onnx::NodeProto;

std::string label_of(const NodeProto& node, const std::string& scope, size_t position) {
  std::string own =
      node.name().empty() ? fmt::format("{}_{}", node.op_type(), position) : node.name();
  return scope.empty() ? own : scope + "/" + own;
}

class Flattener {
 public:
  Flattener(const Inlining& inlining, FlatGraph& graph) : inlining_(inlining), graph_(graph) {}

  Status add(std::shared_ptr<NodeProto> node, int64_t opset, const std::string& scope,
             size_t position, int depth) {
    if (graph_.nodes.size() >= kMaxNodes)
      return bad_model("more than {} nodes once functions are inlined", kMaxNodes);
    const FunctionProto* function = inlining_.function_of(*node);
    std::string label = label_of(*node, scope, position);
    if (function == nullptr) {
      graph_.nodes.push_back({std::move(node), opset, std::move(label)});
      return {};
    }
    Status status = inline_call(*node, *function, label, opset, depth);
    if (!status.ok())
      return std::move(status).with_context(
          fmt::format("node '{}' ({})", label, qualified_op(*node)));
    return {};
  }

 private:
  // Puts the body of `function` in place of `call`.
  Status inline_call(const NodeProto& call, const FunctionProto& function, const std::string& label,
                     int64_t opset, int depth) {
    if (depth >= kMaxFunctionDepth)
      return bad_model("functions call each other more than {} deep", kMaxFunctionDepth);
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
      return bad_model("{} inputs and {} outputs, the function has {} and {}", call.input_size(),
                       call.output_size(), function.input_size(), function.output_size());
    if (++calls_ > kMaxNodes) return bad_model("more than {} function calls", kMaxNodes);
    const int64_t own_opset = TRY(standard_opset(function.opset_import()));
    const bool is_read = std::any_of(call.output().begin(), call.output().end(),
                                     [](const std::string& name) { return !name.empty(); });
    if (!is_read) return {};
    // A call inside may give the same output.
    const std::string prefix = fmt::format("{}{}/", inlining_.inner_prefix(call), depth);
    std::unordered_map<std::string, std::string> names;
    for (int i = 0; i < function.input_size(); ++i)
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    // An output may also be an input passed through: it then gets a node that copies it.
    std::vector<std::pair<std::string, std::string>> copies;
    for (int i = 0; i < call.output_size(); ++i) {
      if (call.output(i).empty()) continue;
      auto [it, fresh] = names.emplace(function.output(i), call.output(i));
      if (!fresh) copies.emplace_back(it->second, call.output(i));
    }
    std::unordered_map<std::string, const AttributeProto*> attributes;
    for (const auto& attribute : function.attribute_proto())
      attributes[attribute.name()] = &attribute;
    for (const auto& attribute : call.attribute()) attributes[attribute.name()] = &attribute;

    auto rename = [&](std::string* name) {
      auto [it, fresh] = names.emplace(*name, "");
      if (fresh) it->second = prefix + *name;
      *name = it->second;
    };
    size_t position = 0;
    for (const NodeProto& inner : function.node()) {
      auto copy = std::make_shared<NodeProto>(inner);
      rename_values(*copy, rename, prefix);
      bind_attributes(*copy, attributes);
      copied_bytes_ += copy->ByteSizeLong();
      if (copied_bytes_ > kMaxCopiedBytes)
        return bad_model("functions expand to more than {} bytes", kMaxCopiedBytes);
      TRY(add(std::move(copy), own_opset == 0 ? opset : own_opset, label, position++, depth + 1));
    }
    for (const auto& [from, to] : copies) {
      auto copy = std::make_shared<NodeProto>();
      copy->set_op_type("Identity");
      copy->add_input(from);
      copy->add_output(to);
      graph_.nodes.push_back({std::move(copy), opset, label});
    }
    return {};
  }

  // An attribute that names one of the function takes its value, or goes when that has none; so do
  // those of nodes in graphs inside.
  static void bind_attributes(
      NodeProto& node, const std::unordered_map<std::string, const AttributeProto*>& values) {
    for (int i = node.attribute_size(); i-- > 0;) {
      AttributeProto* attribute = node.mutable_attribute(i);
      if (attribute->ref_attr_name().empty()) {
        if (attribute->has_g())
          for (NodeProto& inner : *attribute->mutable_g()->mutable_node())
            bind_attributes(inner, values);
        for (auto& graph : *attribute->mutable_graphs())
          for (NodeProto& inner : *graph.mutable_node()) bind_attributes(inner, values);
        continue;
      }
      auto it = values.find(attribute->ref_attr_name());
      if (it == values.end()) {
        node.mutable_attribute()->DeleteSubrange(i, 1);
      } else {
        const std::string name = attribute->name();
        *attribute = *it->second;
        attribute->set_name(name);
      }
    }
  }

  const Inlining& inlining_;
  FlatGraph& graph_;
  size_t calls_ = 0;
  size_t copied_bytes_ = 0;
};

}  // namespace

std::string qualified_op(const NodeProto& node) {
  return is_standard_domain(node.domain()) ? node.op_type() : node.domain() + "::" + node.op_type();
}

std::string describe(const FlatNode& node) {
  return fmt::format("node '{}' ({})", node.label, qualified_op(*node.proto));
}

Result<FlatGraph> flatten(const Inlining& inlining, ::onnx::GraphProto& graph, int64_t opset,
                          const std::string& scope) {
  FlatGraph flat;
  Flattener flattener(inlining, flat);
  size_t position = 0;
  for (NodeProto& node : *graph.mutable_node())
    TRY(flattener.add(std::shared_ptr<NodeProto>(std::shared_ptr<void>(), &node), opset, scope,
                      position++, 0));
  return flat;
}

}  // namespace collage::frontend
