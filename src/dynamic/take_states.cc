#include "dynamic/take_states.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace collage {

namespace {

using frontend::FlatNode;

constexpr int64_t kOpset = 17;  // of the nodes that are added

size_t index_of(const std::vector<TensorInfo>& infos, const std::string& name) {
  const auto it = std::find_if(infos.begin(), infos.end(),
                               [&](const TensorInfo& info) { return info.name == name; });
  return static_cast<size_t>(it - infos.begin());
}

std::string text_of(const DimSum& sum, size_t first) {
  std::string text;
  for (size_t i = first; i < sum.terms.size(); ++i) {
    const DimSum::Term& term = sum.terms[i];
    text +=
        (text.empty() ? "" : " + ") + (term.name.empty() ? std::to_string(term.number) : term.name);
  }
  return text;
}

FlatNode node_of(const char* op, const std::vector<std::string>& inputs,
                 const std::string& output) {
  auto proto = std::make_shared<::onnx::NodeProto>();
  proto->set_op_type(op);
  for (const std::string& input : inputs) proto->add_input(input);
  proto->add_output(output);
  return {std::move(proto), kOpset, output};
}

void set_integer(FlatNode& node, const char* name, int64_t value) {
  auto* attribute = node.proto->add_attribute();
  attribute->set_name(name);
  attribute->set_type(::onnx::AttributeProto::INT);
  attribute->set_i(value);
}

// As nodes behind those of the graph.
void add_nodes(frontend::RemainingGraph& graph, const frontend::Increment& increment) {
  const std::string& output = increment.output;
  const std::string length = output + "/kept", ends = output + "/ends", axes = output + "/axes";
  const auto axis = static_cast<int64_t>(increment.axis);
  FlatNode shape = node_of("Shape", {increment.input}, length);
  set_integer(shape, "start", axis);
  set_integer(shape, "end", axis + 1);
  graph.constants[ends] = Tensor::from<int64_t>({1}, {std::numeric_limits<int64_t>::max()});
  graph.constants[axes] = Tensor::from<int64_t>({1}, {axis});
  graph.nodes.push_back(std::move(shape));
  graph.nodes.push_back(node_of("Slice", {output, length, ends, axes}, increment.name()));
}

}  // namespace

Result<std::vector<StateInfo>> take_states(const DynamicOptions& options,
                                           std::vector<TensorInfo>& inputs,
                                           std::vector<TensorInfo>& outputs,
                                           frontend::RemainingGraph& graph) {
  std::vector<StateInfo> states;
  std::vector<std::string> added;
  for (const auto& [input_name, output_name] : options.states) {
    const size_t input = index_of(inputs, input_name), output = index_of(outputs, output_name);
    if (input == inputs.size()) return usage_error("state '{}' is no input", input_name);
    if (output == outputs.size())
      return usage_error("'{}', which gives state '{}', is no output", output_name, input_name);
    StateInfo state;
    state.input = inputs[input];
    state.added = outputs[output];
    std::optional<size_t> axis;
    for (size_t i = 0; i < state.input.dims.size(); ++i)
      if (options.buckets.count(state.input.dims[i]) != 0) axis = i;
    if (!axis) return usage_error("state '{}' has no dimension with buckets", input_name);
    state.axis = *axis;
    state.dim = state.input.dims[*axis];
    const std::optional<DimSum> sum = state.added.dims.size() == state.input.dims.size()
                                          ? DimSum::parse(state.added.dims[*axis])
                                          : std::nullopt;
    if (!sum || sum->terms.size() < 2 || sum->terms[0].name != state.dim)
      return usage_error("dimension {} of output '{}' is not '{} + …'", *axis, output_name,
                         state.dim);
    state.added.dims[*axis] = text_of(*sum, 1);
    const frontend::Increment increment{input_name, output_name, *axis};
    if (graph.nodes.empty())
      graph.increments.push_back(increment);
    else
      add_nodes(graph, increment);
    added.push_back(increment.name());
    states.push_back(std::move(state));
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(input));
    outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(output));
    graph.outputs.erase(std::find(graph.outputs.begin(), graph.outputs.end(), output_name));
  }
  graph.outputs.insert(graph.outputs.end(), added.begin(), added.end());
  return states;
}

}  // namespace collage
