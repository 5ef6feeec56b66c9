#include "frontend/onnx/functions.h"

#include <map>
#include <tuple>
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
  Flattener(const ::onnx::ModelProto& model, FlatGraph& graph) : graph_(graph) {
    for (const FunctionProto& function : model.functions())
      functions_[{function.domain(), function.name(), function.overload()}] = &function;
  }

  const FunctionProto* find(const NodeProto& node) const {
    auto it = functions_.find({node.domain(), node.op_type(), node.overload()});
    return it == functions_.end() ? nullptr : it->second;
  }

  Status add(NodeProto& node, int64_t opset, const std::string& scope, size_t position, int depth) {
    if (graph_.nodes.size() >= kMaxNodes)
      return bad_model("more than {} nodes once functions are inlined", kMaxNodes);
    const FunctionProto* function = find(node);
    std::string label = label_of(node, scope, position);
    if (function == nullptr) {
      graph_.nodes.push_back({&node, opset, std::move(label)});
      return {};
    }
    Status status = inline_call(node, *function, label, opset, depth);
    if (!status.ok())
      return std::move(status).with_context(
          fmt::format("node '{}' ({})", label, qualified_op(node)));
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
    const std::string prefix = fmt::format("{}#{}/", label, calls_);
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
      if (name->empty()) return;
      auto [it, fresh] = names.emplace(*name, "");
      if (fresh) it->second = prefix + *name;
      *name = it->second;
    };
    size_t position = 0;
    for (const NodeProto& inner : function.node()) {
      copied_bytes_ += inner.ByteSizeLong();
      if (copied_bytes_ > kMaxCopiedBytes)
        return bad_model("functions expand to more than {} bytes", kMaxCopiedBytes);
      auto copy = std::make_unique<NodeProto>(inner);
      for (auto& name : *copy->mutable_input()) rename(&name);
      for (auto& name : *copy->mutable_output()) rename(&name);
      bind_attributes(*copy, attributes);
      NodeProto& node = *copy;
      graph_.owned.push_back(std::move(copy));
      TRY(add(node, own_opset == 0 ? opset : own_opset, label, position++, depth + 1));
    }
    for (const auto& [from, to] : copies) {
      auto copy = std::make_unique<NodeProto>();
      copy->set_op_type("Identity");
      copy->add_input(from);
      copy->add_output(to);
      graph_.nodes.push_back({copy.get(), opset, label});
      graph_.owned.push_back(std::move(copy));
    }
    return {};
  }

  // An attribute that names one of the function takes its value, or goes when that has none.
  static void bind_attributes(
      NodeProto& node, const std::unordered_map<std::string, const AttributeProto*>& values) {
    for (int i = node.attribute_size(); i-- > 0;) {
      AttributeProto* attribute = node.mutable_attribute(i);
      if (attribute->ref_attr_name().empty()) continue;
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

  FlatGraph& graph_;
  std::map<std::tuple<std::string, std::string, std::string>, const FunctionProto*> functions_;
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

Result<FlatGraph> flatten(::onnx::ModelProto& model, int64_t opset) {
  FlatGraph graph;
  Flattener flattener(model, graph);
  size_t position = 0;
  for (NodeProto& node : *model.mutable_graph()->mutable_node())
    TRY(flattener.add(node, opset, "", position++, 0));
  return graph;
}

}  // namespace collage::frontend
