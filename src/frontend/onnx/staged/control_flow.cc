#include "frontend/onnx/staged/control_flow.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/staged/control_form.h"
#include "frontend/onnx/staged/scan_layout.h"
#include "frontend/onnx/staged/subgraphs.h"

namespace collage::frontend {

namespace {

// Loops of so few nodes in all iterations are unrolled: what iterations share is found then.
constexpr int64_t kFewNodes = 32;
// And of so many where iterations differ in what they are.
constexpr int64_t kMaxUnrolledIterations = 256;
constexpr int64_t kMaxUnrolledNodes = 2048;
constexpr int64_t kUnsqueezeByInput = 13;  // the operator set since which its axes are an input

Status import_if(GraphImporter& importer, const FlatNode& node) {
  if (node.proto->input_size() != 1) return bad_model("{} inputs, not 1", node.proto->input_size());
  const Expr condition = TRY(importer.value(node.proto->input(0)));
  const Tensor* known = importer.folder().value(condition);
  if (known == nullptr) {
    if (!TRY(form_if(importer, node)))
      importer.add_late(node, Lateness::kRun, "control flow on a computed condition");
    return {};
  }
  const bool taken = TRY(scalar_value(*known, "the condition")) != 0;
  const Inlining& inlining = importer.inlining();
  InlinedGraph branch = TRY(inline_graph(inlining, node, taken ? "then_branch" : "else_branch",
                                         inlining.inner_prefix(*node.proto)));
  if (static_cast<int>(branch.outputs.size()) != node.proto->output_size())
    return bad_model("a branch has {} outputs, the node {}", branch.outputs.size(),
                     node.proto->output_size());
  TRY(define_initializers(importer, branch));
  TRY(importer.import_inlined(branch.nodes, branch.outputs));
  for (int i = 0; i < node.proto->output_size(); ++i)
    TRY(importer.rename(branch.outputs[static_cast<size_t>(i)], node.proto->output(i), node));
  return {};
}

// Whether the condition that the body gives is always true: it hands on its own, or a constant.
bool goes_on(const ::onnx::GraphProto& body) {
  std::string name = body.output(0).name();
  for (int step = 0; step < body.node_size(); ++step) {
    if (name == body.input(1).name()) return true;
    for (const auto& tensor : body.initializer())
      if (tensor.name() == name)
        return tensor.raw_data().size() == 1
                   ? tensor.raw_data()[0] != 0
                   : tensor.int32_data_size() == 1 && tensor.int32_data(0);
    const auto made = std::find_if(body.node().begin(), body.node().end(), [&](const auto& node) {
      return node.output_size() == 1 && node.output(0) == name;
    });
    if (made == body.node().end()) return false;
    if (made->op_type() == "Constant" && made->attribute_size() == 1) {
      const auto& value = made->attribute(0).t();
      return value.raw_data().size() == 1 ? value.raw_data()[0] != 0
                                          : value.int32_data_size() == 1 && value.int32_data(0);
    }
    if (made->op_type() != "Identity" || made->input_size() != 1) return false;
    name = made->input(0);
  }
  return name == body.input(1).name();
}

// The elements of what iterations gave, joined along a new axis; one that is late makes all of it
// late, by nodes of its own.
Status stack(GraphImporter& importer, const FlatNode& node, const std::vector<std::string>& parts,
             int64_t axis, const std::string& output) {
  if (output.empty()) return {};
  FlatNode concat{std::make_shared<::onnx::NodeProto>(), node.opset, node.label};
  concat.proto->set_op_type("Concat");
  auto* attribute = concat.proto->add_attribute();
  attribute->set_name("axis");
  attribute->set_type(::onnx::AttributeProto::INT);
  attribute->set_i(axis);
  concat.proto->add_output(output);
  std::vector<FlatNode> nodes;
  // Bodies' names go on with a number.
  const std::string own = importer.inlining().inner_prefix(*concat.proto) + "stack/";
  const std::string axes = own + "axes";
  importer.define(axes, make_constant(Tensor::from<int64_t>({1}, {axis}), node.label));
  for (const std::string& part : parts) {
    const std::string wide = own + std::to_string(nodes.size());
    FlatNode unsqueeze{std::make_shared<::onnx::NodeProto>(), kUnsqueezeByInput, node.label};
    unsqueeze.proto->set_op_type("Unsqueeze");
    unsqueeze.proto->add_input(part);
    unsqueeze.proto->add_input(axes);
    unsqueeze.proto->add_output(wide);
    concat.proto->add_input(wide);
    nodes.push_back(std::move(unsqueeze));
  }
  nodes.push_back(std::move(concat));
  return importer.import_inlined(nodes, {});
}

// The body for one iteration: its names are its own.
Result<InlinedGraph> inline_iteration(GraphImporter& importer, const FlatNode& node,
                                      int64_t iteration) {
  const Inlining& inlining = importer.inlining();
  return inline_graph(inlining, node, "body",
                      fmt::format("{}{}/", inlining.inner_prefix(*node.proto), iteration));
}

bool is_unrolled(const ::onnx::GraphProto& body, int64_t iterations, int64_t most_nodes) {
  return iterations >= 1 && iterations <= kMaxUnrolledIterations &&
         iterations * std::max(1, body.node_size()) <= most_nodes;
}

Status add_uneven(GraphImporter& importer, const FlatNode& node) {
  importer.add_late(
      node, Lateness::kRun,
      "control flow whose iterations differ in their types or whose rows a run counts");
  return {};
}

Status import_loop(GraphImporter& importer, const FlatNode& node) {
  const ::onnx::GraphProto& body = *TRY(graph_attribute(*node.proto, "body"));
  const int carried = node.proto->input_size() - 2;
  if (carried < 0 || body.input_size() != carried + 2 || body.output_size() < carried + 1 ||
      node.proto->output_size() > body.output_size() - 1)
    return bad_model("a body of {} inputs and {} outputs for {} inputs and {} outputs",
                     body.input_size(), body.output_size(), node.proto->input_size(),
                     node.proto->output_size());
  const Expr trips = TRY(input_value(importer, node, 0));
  const Expr condition = TRY(input_value(importer, node, 1));
  const Tensor* count = trips == nullptr ? nullptr : importer.folder().value(trips);
  const Tensor* first = condition == nullptr ? nullptr : importer.folder().value(condition);
  const bool starts =
      condition == nullptr || (first != nullptr && TRY(scalar_value(*first, "the condition")) != 0);
  const int64_t iterations = count == nullptr ? 0 : TRY(scalar_value(*count, "the trip count"));
  const bool certain = count != nullptr && starts && goes_on(body);
  const bool unrolls = certain && is_unrolled(body, iterations, kMaxUnrolledNodes);
  // A number that shapes decide is another for other sizes.
  const bool varies = trips != nullptr && as<ConstantNode>(trips) == nullptr;
  if (!unrolls || varies || !is_unrolled(body, iterations, kFewNodes)) {
    const auto trips_known = certain ? std::optional(iterations) : std::nullopt;
    if (TRY(form_loop(importer, node, trips_known, unrolls && !varies))) return {};
    if (!unrolls) return add_uneven(importer, node);
  }
  std::vector<std::string> state;
  for (int i = 0; i < carried; ++i) state.push_back(node.proto->input(i + 2));
  std::vector<std::vector<std::string>> stacked(
      static_cast<size_t>(body.output_size() - 1 - carried));
  for (int64_t trip = 0; trip < iterations; ++trip) {
    InlinedGraph inner = TRY(inline_iteration(importer, node, trip));
    TRY(define_initializers(importer, inner));
    importer.define(inner.inputs[0], make_constant(Tensor::scalar<int64_t>(trip), node.label));
    importer.define(inner.inputs[1], make_constant(Tensor::scalar<bool>(true), node.label));
    for (int i = 0; i < carried; ++i)
      TRY(importer.rename(state[static_cast<size_t>(i)], inner.inputs[static_cast<size_t>(i) + 2],
                          node));
    TRY(importer.import_inlined(inner.nodes, inner.outputs));
    for (size_t i = 0; i < state.size(); ++i) state[i] = inner.outputs[i + 1];
    for (size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(inner.outputs[state.size() + 1 + i]);
  }
  for (int i = 0; i < node.proto->output_size(); ++i) {
    const size_t k = static_cast<size_t>(i);
    if (k < state.size())
      TRY(importer.rename(state[k], node.proto->output(i), node));
    else
      TRY(stack(importer, node, stacked[k - state.size()], 0, node.proto->output(i)));
  }
  return {};
}

// One slice of a scanned input, without the axis.
Status define_slice(GraphImporter& importer, const FlatNode& node, const std::string& whole,
                    int64_t axis, int64_t index, const std::string& name) {
  NodeContext context = context_of(importer, node);
  const Expr data = TRY(importer.value(whole));
  const Expr position = make_constant(Tensor::scalar<int64_t>(index), node.label);
  importer.define(name, TRY(context.call("take", {data, position}, {{"axis", axis}})));
  return {};
}

Status import_scan(GraphImporter& importer, const FlatNode& node) {
  const ::onnx::GraphProto& body = *TRY(graph_attribute(*node.proto, "body"));
  if (node.opset < kScanWithoutBatch) {
    importer.add_late(node, Lateness::kNever, "Scan of operator set 8");
    return {};
  }
  const ScanLayout layout = TRY(ScanLayout::of(*node.proto, body));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < layout.scanned; ++i)
    shapes.push_back(TRY(importer.value(node.proto->input(static_cast<int>(layout.carried + i))))
                         ->tensor_type()
                         .shape);
  const int64_t length = TRY(layout.length(shapes));
  const bool unrolls = is_unrolled(body, length, kMaxUnrolledNodes);
  const bool varies = importer.is_for_several_sizes();
  if (!unrolls || varies || !is_unrolled(body, length, kFewNodes)) {
    if (TRY(form_scan(importer, node, unrolls && !varies))) return {};
    if (!unrolls) return add_uneven(importer, node);
  }
  std::vector<std::string> state;
  for (size_t i = 0; i < layout.carried; ++i)
    state.push_back(node.proto->input(static_cast<int>(i)));
  std::vector<std::vector<std::string>> stacked(layout.stacked);
  for (int64_t step = 0; step < length; ++step) {
    InlinedGraph inner = TRY(inline_iteration(importer, node, step));
    TRY(define_initializers(importer, inner));
    for (size_t i = 0; i < state.size(); ++i) TRY(importer.rename(state[i], inner.inputs[i], node));
    for (size_t i = 0; i < layout.scanned; ++i)
      TRY(define_slice(importer, node, node.proto->input(static_cast<int>(layout.carried + i)),
                       TRY(layout.input_axis(i, shapes[i])), layout.position(i, step, length),
                       inner.inputs[layout.carried + i]));
    TRY(importer.import_inlined(inner.nodes, inner.outputs));
    for (size_t i = 0; i < state.size(); ++i) state[i] = inner.outputs[i];
    for (size_t i = 0; i < stacked.size(); ++i)
      stacked[i].push_back(inner.outputs[state.size() + i]);
  }
  for (int i = 0; i < node.proto->output_size(); ++i) {
    const size_t k = static_cast<size_t>(i);
    if (k < state.size()) {
      TRY(importer.rename(state[k], node.proto->output(i), node));
      continue;
    }
    std::vector<std::string>& parts = stacked[k - state.size()];
    if (layout.output_backwards(k - state.size())) std::reverse(parts.begin(), parts.end());
    TRY(stack(importer, node, parts, layout.output_axis(k - state.size()), node.proto->output(i)));
  }
  return {};
}

}  // namespace

Result<int64_t> scalar_value(const Tensor& tensor, std::string_view what) {
  if (tensor.size() != 1 || !(is_integer(tensor.dtype()) || tensor.dtype() == DType::kBool))
    return bad_model("{} is a {} of shape {}, not one integer", what, dtype_name(tensor.dtype()),
                     shape_to_string(tensor.shape()));
  return tensor.element_as_int64(0);
}

bool is_control_flow(const ::onnx::NodeProto& node) {
  return is_standard_domain(node.domain()) &&
         (node.op_type() == "If" || node.op_type() == "Loop" || node.op_type() == "Scan");
}

Status import_control_flow(GraphImporter& importer, const FlatNode& node) {
  if (node.proto->op_type() == "If") return import_if(importer, node);
  if (node.proto->op_type() == "Loop") return import_loop(importer, node);
  return import_scan(importer, node);
}

}  // namespace collage::frontend
