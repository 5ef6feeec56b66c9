#include "frontend/onnx/staged/control_form.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/staged/scan_layout.h"
#include "frontend/onnx/staged/subgraphs.h"
#include "ops/control.h"

namespace collage::frontend {

namespace {

// A value of the graph around a function, and the parameter that stands for it inside.
struct Captured {
  Expr outside, inside;
};

// A graph inside a node, imported for inputs that are expressions over parameters of a function.
struct InnerGraph {
  std::vector<Expr> results;
  std::vector<Captured> captured;
};

// None: it cannot be imported now.
Result<std::optional<InnerGraph>> import_graph(
    GraphImporter& importer, const FlatNode& node, const std::string& attribute,
    const std::function<std::vector<Expr>(const ::onnx::GraphProto&)>& inputs) {
  const ::onnx::GraphProto& proto = *TRY(graph_attribute(*node.proto, attribute));
  InlinedGraph graph =
      TRY(inline_graph(importer.inlining(), node, attribute,
                       importer.inlining().inner_prefix(*node.proto) + attribute + "/"));
  InnerGraph result;
  std::unordered_map<const ExprNode*, Expr> known;
  Folder* inner_folder = nullptr;
  GraphImporter inner = importer.inner([&](const std::string& name) -> Result<Expr> {
    Expr outside = TRY(importer.value(name));
    if (as<ConstantNode>(outside) != nullptr) return outside;
    Expr& inside = known[outside.get()];
    if (inside == nullptr) {
      inside = make_var(name.substr(name.rfind('/') + 1), outside->type());  // for people
      result.captured.push_back({outside, inside});
      if (const Tensor* value = importer.folder().value(outside))
        inner_folder->know(inside, *value);
    }
    return inside;
  });
  inner_folder = &inner.folder();
  const std::vector<Expr> given = inputs(proto);
  for (size_t i = 0; i < given.size(); ++i) inner.define(graph.inputs[i], given[i]);
  TRY(define_initializers(inner, graph));
  // What is wrong with a graph may be that it is meant for other shapes, and never runs.
  const Status imported = inner.import_inlined(graph.nodes, graph.outputs);
  if (!imported.ok() || !inner.late().empty()) {
    const std::string why = imported.ok() ? inner.late()[0].reason : imported.to_string();
    log::info("{}: its {} is imported when it runs: {}", describe(node), attribute, why);
    return std::optional<InnerGraph>();
  }
  for (const std::string& name : graph.outputs) result.results.push_back(TRY(inner.value(name)));
  return std::optional(std::move(result));
}

std::vector<Type> types_of(const std::vector<Expr>& values) {
  std::vector<Type> types;
  for (const Expr& value : values) types.push_back(value->type());
  return types;
}

// The one number of a tensor of one element, as a scalar of that type.
Result<Expr> as_scalar(NodeContext& context, const Expr& value, DType dtype) {
  if (!value->type().is_tensor() || num_elements(shape_of(value)) != 1)
    return bad_model("a {} stands for one number", value->type().to_string());
  return context.cast(TRY(context.reshape(value, {})), dtype);
}

// A scalar as the body declares its input: perhaps as a list of one.
Result<Expr> as_declared(NodeContext& context, const Expr& scalar,
                         const ::onnx::ValueInfoProto& input) {
  const auto& type = input.type().tensor_type();
  const bool list = type.has_shape() && type.shape().dim_size() == 1;
  return list ? context.reshape(scalar, {1}) : Result<Expr>(scalar);
}

// Without a trip count.
Expr endless() { return make_scalar<int64_t>(std::numeric_limits<int64_t>::max()); }

// What a loop's node says, whether it is Loop or Scan.
struct Loop {
  Expr trips, condition, counter, goes_on;  // the latter two inside
  std::vector<Expr> states, scanned;        // outside
  std::vector<Expr> state_params, slices;   // inside
  std::vector<Expr> rows;                   // that are wanted
  int64_t row_count = -1;
  bool or_unrolled = false;
};

// Its results; none where a state changes its type, or it is better unrolled.
Result<std::optional<Expr>> make_loop(const Loop& loop, const InnerGraph& body,
                                      const std::vector<Expr>& next_states,
                                      const std::string& label) {
  if (types_of(next_states) != types_of(loop.states)) return std::optional<Expr>();
  std::vector<Expr> params = {loop.counter}, results = {loop.goes_on};
  params.insert(params.end(), loop.state_params.begin(), loop.state_params.end());
  params.insert(params.end(), loop.slices.begin(), loop.slices.end());
  results.insert(results.end(), next_states.begin(), next_states.end());
  results.insert(results.end(), loop.rows.begin(), loop.rows.end());
  if (results.size() == 1) return std::optional<Expr>();
  std::vector<Expr> operands = loop.states;
  operands.insert(operands.end(), loop.scanned.begin(), loop.scanned.end());
  for (const Captured& value : body.captured) {
    params.push_back(value.inside);
    operands.push_back(value.outside);
  }
  if (loop.or_unrolled && std::all_of(operands.begin(), operands.end(), [](const Expr& operand) {
        return operand->kind() == ExprKind::kConstant;
      }))
    return std::optional<Expr>();
  std::vector<Expr> args = {loop.trips, loop.condition,
                            make_function(std::move(params), make_tuple(std::move(results)))};
  args.insert(args.end(), operands.begin(), operands.end());
  return std::optional(TRY(make_call(kLoopOp, std::move(args),
                                     {{"states", static_cast<int64_t>(loop.states.size())},
                                      {"scanned", static_cast<int64_t>(loop.scanned.size())},
                                      {"rows", loop.row_count}},
                                     label)));
}

// Moves an axis to another place.
Result<Expr> with_axis_moved(NodeContext& context, const Expr& value, int64_t from, int64_t to) {
  Ints axes;
  for (int64_t axis = 0; axis < rank_of(value); ++axis)
    if (axis != from) axes.push_back(axis);
  axes.insert(axes.begin() + to, from);
  return context.transpose(value, axes);
}

Result<Expr> backwards(NodeContext& context, const Expr& value) {
  return context.call("reverse", {value}, {{"axis", Ints{0}}});
}

bool wants_output(const FlatNode& node, size_t i) {
  const int output = static_cast<int>(i);
  return output < node.proto->output_size() && !node.proto->output(output).empty();
}

}  // namespace

Status define_initializers(GraphImporter& importer, InlinedGraph& graph) {
  for (auto& [name, proto] : graph.initializers)
    importer.define(name, make_constant(TRY(importer.data().take(proto)), name));
  return {};
}

Result<Expr> input_value(GraphImporter& importer, const FlatNode& node, int i) {
  if (i >= node.proto->input_size() || node.proto->input(i).empty()) return Expr();
  return importer.value(node.proto->input(i));
}

NodeContext context_of(GraphImporter& importer, const FlatNode& node) {
  return NodeContext(*node.proto, node.opset, node.label, {}, importer.folder(), importer.data());
}

Result<bool> form_if(GraphImporter& importer, const FlatNode& node) {
  NodeContext context = context_of(importer, node);
  const Expr condition =
      TRY(as_scalar(context, TRY(importer.value(node.proto->input(0))), DType::kBool));
  std::vector<InnerGraph> branches;
  for (const char* attribute : {"then_branch", "else_branch"}) {
    auto branch = TRY(import_graph(importer, node, attribute,
                                   [](const ::onnx::GraphProto&) { return std::vector<Expr>(); }));
    if (!branch) return false;
    branches.push_back(std::move(*branch));
  }
  const size_t outputs = branches[0].results.size();
  if (outputs == 0 || types_of(branches[0].results) != types_of(branches[1].results)) return false;
  std::vector<Expr> operands;
  for (const InnerGraph& branch : branches)
    for (const Captured& value : branch.captured)
      if (std::find(operands.begin(), operands.end(), value.outside) == operands.end())
        operands.push_back(value.outside);
  std::vector<Expr> args = {condition};
  for (const InnerGraph& branch : branches) {
    std::vector<Expr> params;
    for (const Expr& operand : operands) {
      const auto value =
          std::find_if(branch.captured.begin(), branch.captured.end(),
                       [&](const Captured& captured) { return captured.outside == operand; });
      params.push_back(value != branch.captured.end() ? value->inside
                                                      : make_var("unused", operand->type()));
    }
    Expr body = outputs == 1 ? branch.results[0] : make_tuple(branch.results);
    args.push_back(make_function(std::move(params), std::move(body)));
  }
  args.insert(args.end(), operands.begin(), operands.end());
  const Expr made = TRY(make_call(kIfOp, std::move(args), {}, node.label));
  for (size_t i = 0; i < outputs; ++i)
    if (wants_output(node, i))
      importer.define(node.proto->output(static_cast<int>(i)),
                      outputs == 1 ? made : context.item(made, static_cast<int64_t>(i)));
  return true;
}

Result<bool> form_loop(GraphImporter& importer, const FlatNode& node, std::optional<int64_t> trips,
                       bool or_unrolled) {
  NodeContext context = context_of(importer, node);
  Loop loop;
  loop.or_unrolled = or_unrolled;
  loop.trips = TRY(input_value(importer, node, 0));
  loop.trips =
      loop.trips == nullptr ? endless() : TRY(as_scalar(context, loop.trips, DType::kInt64));
  loop.condition = TRY(input_value(importer, node, 1));
  loop.condition = loop.condition == nullptr
                       ? make_scalar<bool>(true)
                       : TRY(as_scalar(context, loop.condition, DType::kBool));
  loop.counter = make_var("i", TensorType{{}, DType::kInt64});
  const ::onnx::GraphProto& proto = *TRY(graph_attribute(*node.proto, "body"));
  const Expr counter = TRY(as_declared(context, loop.counter, proto.input(0)));
  const Expr goes_on = TRY(as_declared(context, make_scalar<bool>(true), proto.input(1)));
  for (int i = 2; i < node.proto->input_size(); ++i) {
    loop.states.push_back(TRY(importer.value(node.proto->input(i))));
    loop.state_params.push_back(make_var(proto.input(i).name(), loop.states.back()->type()));
  }
  const size_t states = loop.states.size();
  const auto body = TRY(import_graph(importer, node, "body", [&](const ::onnx::GraphProto&) {
    std::vector<Expr> inputs = {counter, goes_on};
    inputs.insert(inputs.end(), loop.state_params.begin(), loop.state_params.end());
    return inputs;
  }));
  if (!body) return false;
  loop.goes_on = TRY(as_scalar(context, body->results[0], DType::kBool));
  const auto first = body->results.begin() + 1;
  const auto first_row = first + static_cast<std::ptrdiff_t>(states);
  for (auto row = first_row; row != body->results.end(); ++row)
    if (wants_output(node, static_cast<size_t>(row - first))) loop.rows.push_back(*row);
  if (!loop.rows.empty() && !trips) return false;  // nobody knows how many rows there will be
  if (!loop.rows.empty()) loop.row_count = std::max<int64_t>(0, *trips);
  const auto made = TRY(make_loop(loop, *body, {first, first_row}, node.label));
  if (!made) return false;
  int64_t item = 0;
  for (size_t i = 0; i + 1 < body->results.size(); ++i) {
    const bool wanted = wants_output(node, i);
    if (wanted) importer.define(node.proto->output(static_cast<int>(i)), context.item(*made, item));
    if (i < states || wanted) ++item;
  }
  return true;
}

Result<bool> form_scan(GraphImporter& importer, const FlatNode& node, bool or_unrolled) {
  NodeContext context = context_of(importer, node);
  const ::onnx::GraphProto& proto = *TRY(graph_attribute(*node.proto, "body"));
  const ScanLayout layout = TRY(ScanLayout::of(*node.proto, proto));
  Loop loop;
  loop.or_unrolled = or_unrolled;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < layout.carried + layout.scanned; ++i) {
    Expr value = TRY(importer.value(node.proto->input(static_cast<int>(i))));
    const std::string& name = proto.input(static_cast<int>(i)).name();
    if (i < layout.carried) {
      loop.state_params.push_back(make_var(name, value->type()));
      loop.states.push_back(std::move(value));
      continue;
    }
    const size_t scanned = i - layout.carried;
    shapes.push_back(shape_of(value));
    const int64_t axis = TRY(layout.input_axis(scanned, shapes.back()));
    value = TRY(with_axis_moved(context, value, axis, 0));
    if (layout.position(scanned, 0, 2) != 0) value = TRY(backwards(context, value));
    TensorType slice = value->tensor_type();
    slice.shape.erase(slice.shape.begin());
    loop.slices.push_back(make_var(name, slice));
    loop.scanned.push_back(std::move(value));
  }
  const int64_t length = TRY(layout.length(shapes));
  loop.trips = make_scalar<int64_t>(length);
  loop.condition = loop.goes_on = make_scalar<bool>(true);
  loop.counter = make_var("i", TensorType{{}, DType::kInt64});
  loop.row_count = length;
  const auto body = TRY(import_graph(importer, node, "body", [&](const ::onnx::GraphProto&) {
    std::vector<Expr> inputs = loop.state_params;
    inputs.insert(inputs.end(), loop.slices.begin(), loop.slices.end());
    return inputs;
  }));
  if (!body) return false;
  const auto first_row = body->results.begin() + static_cast<std::ptrdiff_t>(layout.carried);
  for (size_t i = 0; i < layout.stacked; ++i)
    if (wants_output(node, layout.carried + i))
      loop.rows.push_back(first_row[static_cast<std::ptrdiff_t>(i)]);
  const auto made = TRY(make_loop(loop, *body, {body->results.begin(), first_row}, node.label));
  if (!made) return false;
  int64_t item = 0;
  for (size_t i = 0; i < layout.carried + layout.stacked; ++i) {
    const bool wanted = wants_output(node, i), is_state = i < layout.carried;
    if (!wanted && !is_state) continue;
    Expr value = context.item(*made, item++);
    if (!is_state) {
      const size_t stacked = i - layout.carried;
      const int64_t axis = TRY(normal_axis(layout.output_axis(stacked), rank_of(value)));
      if (layout.output_backwards(stacked)) value = TRY(backwards(context, value));
      value = TRY(with_axis_moved(context, value, 0, axis));
    }
    if (wanted) importer.define(node.proto->output(static_cast<int>(i)), std::move(value));
  }
  return true;
}

}  // namespace collage::frontend
