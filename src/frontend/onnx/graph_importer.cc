#include "frontend/onnx/graph_importer.h"

#include <algorithm>
#include <utility>

#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/operators/converters.h"
#include "frontend/onnx/staged/control_flow.h"
#include "frontend/onnx/staged/subgraphs.h"

namespace collage::frontend {

namespace {

// Operators that order what they read. Two kernels' results that differ in their last digits only
// may come out in another order, so nothing behind them could be compared.
bool orders_elements(const std::string& op) {
  return op == "TopK" || op == "ArgMax" || op == "ArgMin";
}

bool has_tensor(const ::onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.has_t(); });
}

}  // namespace

bool GraphImporter::is_late(const std::string& name) const {
  auto it = values_.find(name);
  return it != values_.end() && it->second == nullptr;
}

Result<Expr> GraphImporter::value(const std::string& name) {
  if (auto it = values_.find(name); it != values_.end()) return it->second;
  Expr made = TRY(options_.initializer(name));
  if (made == nullptr) return bad_model("'{}' is no output of a node, input or initializer", name);
  values_[name] = made;
  return made;
}

void GraphImporter::add_late(const FlatNode& node, Lateness why, std::string reason,
                             std::vector<std::string> wanted) {
  late_.push_back({node, why, std::move(reason), std::move(wanted)});
  for (const std::string& name : node.proto->output())
    if (!name.empty()) values_[name] = nullptr;
}

bool GraphImporter::waits(const FlatNode& node) const {
  const std::vector<const std::string*> names = used_names(*node.proto);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string* name) { return is_late(*name); });
}

GraphImporter GraphImporter::inner(
    std::function<Result<Expr>(const std::string& name)> find) const {
  GraphImportOptions options = options_;
  options.initializer = std::move(find);
  options.run_sizes = nullptr;  // a body runs more than once, or not at all
  GraphImporter made(inlining_, data_, std::move(options));
  made.narrow_ = narrow_;
  return made;
}

// Values that nobody reads any more go.
void GraphImporter::release(const std::string& name) {
  if (--uses_[name] == 0) values_.erase(name);
}

Result<std::vector<Expr>> GraphImporter::convert(const FlatNode& node, std::vector<Expr> inputs,
                                                 std::vector<Expr>& wanted) {
  const ConverterRow& row = *find_converter(node.proto->domain(), node.proto->op_type());
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  const int count = static_cast<int>(inputs.size());
  if (row.max_inputs >= 0 && count > row.max_inputs)
    return bad_model("{} inputs, at most {} are allowed", count, row.max_inputs);
  for (int i = 0; i < row.min_inputs; ++i)
    if (i >= count || inputs[static_cast<size_t>(i)] == nullptr)
      return bad_model("input {} of {} is missing", i, row.min_inputs);
  // A converter takes the tensors out of a node's attributes.
  ::onnx::NodeProto copy;
  const bool copied = (options_.in_stages || options_.keeps_calls) && has_tensor(*node.proto);
  if (copied) copy = *node.proto;
  NodeContext context(copied ? copy : *node.proto, node.opset, node.label, std::move(inputs),
                      folder_, data_, &wanted);
  TRY(narrow_.before(*node.proto, context));
  std::vector<Expr> outputs = TRY(row.convert(context));
  narrow_.after(*node.proto, context);
  for (size_t i = 0; i < context.num_outputs(); ++i)
    if ((i >= outputs.size() || outputs[i] == nullptr) && context.wants(i) &&
        uses_.count(node.proto->output(static_cast<int>(i))) != 0)
      return unsupported("output {} ('{}') is used", i, node.proto->output(static_cast<int>(i)));
  return outputs;
}

Status GraphImporter::import_node(const FlatNode& node) {
  const std::string &domain = node.proto->domain(), &op = node.proto->op_type();
  if (is_standard_domain(domain) && node.opset == 0)
    return bad_model("the operator set is not imported");
  const bool control = is_control_flow(*node.proto);
  const bool on_host = options_.runs_on_host != nullptr && options_.runs_on_host(*node.proto);
  if (!control && !on_host && find_converter(domain, op) == nullptr) {
    const std::string_view reason = reason_left_out(domain, op);
    add_late(node, Lateness::kNever, reason.empty() ? "unknown operator" : std::string(reason));
    return {};
  }
  if (waits(node)) {
    add_late(node, Lateness::kWaits, "");
    return {};
  }
  if (control) return import_control_flow(*this, node).with_context(describe(node));
  std::vector<Expr> inputs, wanted;
  bool constants = true;
  for (const std::string& name : node.proto->input()) {
    inputs.push_back(name.empty() ? nullptr : TRY(value(name)));
    constants = constants && (name.empty() || folder_.value(inputs.back()) != nullptr);
  }
  if (on_host && (!constants || find_converter(domain, op) == nullptr)) {
    add_late(node, Lateness::kRun, "the shape of the result depends on values");
    return {};
  }
  if (options_.in_stages && orders_elements(op) && !inputs.empty() &&
      as<CallNode>(inputs[0]) != nullptr && is_float(inputs[0]->tensor_type().dtype)) {
    add_late(node, Lateness::kWaits, "");
    return {};
  }
  Result<std::vector<Expr>> outputs = convert(node, inputs, wanted);
  if (!outputs) {
    if (outputs.status().code() != ErrorCode::kUnsupported)
      return std::move(outputs).status().with_context(describe(node));
    std::vector<std::string> names;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (std::find(wanted.begin(), wanted.end(), inputs[i]) != wanted.end())
        names.push_back(node.proto->input(static_cast<int>(i)));
    const Lateness why = names.empty() ? Lateness::kNever : Lateness::kNeedsValues;
    add_late(node, why, outputs.status().to_string(), std::move(names));
    return {};
  }
  for (size_t i = 0; i < outputs->size() && i < static_cast<size_t>(node.proto->output_size()); ++i)
    if (const std::string& name = node.proto->output(static_cast<int>(i)); uses_.count(name) != 0)
      values_[name] = (*outputs)[i];
  ++node_count_;
  return {};
}

Status GraphImporter::import(const std::vector<FlatNode>& nodes) {
  for (const FlatNode& node : nodes)
    for (const std::string* name : used_names(*node.proto)) ++uses_[*name];
  for (const FlatNode& node : nodes) {
    const size_t late = late_.size();
    TRY(import_node(node));
    const bool done =
        std::none_of(late_.begin() + static_cast<std::ptrdiff_t>(late), late_.end(),
                     [&](const LateNode& added) { return added.node.proto == node.proto; });
    for (const std::string* name : used_names(*node.proto)) {
      if (done && options_.in_stages) read_.insert(*name);
      // What late nodes read stays.
      if (done) release(*name);
    }
  }
  return {};
}

Status GraphImporter::import_inlined(const std::vector<FlatNode>& nodes,
                                     const std::vector<std::string>& outputs) {
  for (const std::string& name : outputs) keep(name);
  return import(nodes);
}

Status GraphImporter::rename(const std::string& from, const std::string& to, const FlatNode& node) {
  if (to.empty()) return {};
  Expr made = TRY(value(from));
  if (made == nullptr) {
    add_late(identity_node(from, to, node), Lateness::kWaits, "");
  } else {
    values_[to] = std::move(made);
  }
  return {};
}

}  // namespace collage::frontend
