#include "frontend/onnx/importer.h"

#include <sys/sysinfo.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "frontend/onnx/converters.h"
#include "frontend/onnx/functions.h"
#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/input_shapes.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/narrow_values.h"
#include "frontend/onnx/tensor_data.h"
#include "ops/registry.h"

namespace collage {

namespace {

using namespace frontend;  // NOLINT: this file is the front of that namespace

constexpr size_t kRowsInMessage = 8;

uint64_t default_max_bytes() {
  struct sysinfo info = {};
  if (::sysinfo(&info) != 0) return uint64_t{8} << 30;
  return static_cast<uint64_t>(info.totalram) * info.mem_unit / 10 * 8;
}

// One import: the values defined so far, and the nodes that had to be refused.
class Importer {
 public:
  Importer(const std::filesystem::path& file, const ImportOptions& options)
      : options_(options), data_(file.parent_path()) {}

  Result<ImportedModel> run(::onnx::ModelProto& model);
  std::vector<UnsupportedNode>& unsupported_nodes() { return unsupported_; }

 private:
  Status declare_initializers(::onnx::GraphProto& graph);
  Status declare_inputs(const ::onnx::GraphProto& graph);
  Status import_node(const FlatNode& node);
  Result<std::vector<Expr>> convert(const FlatNode& node, std::vector<Expr> inputs);
  Result<Expr> value(const std::string& name);
  void count_uses(const FlatGraph& graph, const std::vector<size_t>& order,
                  const std::vector<std::string>& outputs);
  void release(const std::string& name);
  void refuse(const FlatNode& node, std::string reason);
  Status unsupported_error() const;

  const ImportOptions& options_;
  TensorData data_;
  Folder folder_;
  ImportedModel result_;
  std::vector<Expr> parameters_;
  // Initializers not read yet. A null value is the output of a node that was refused.
  std::unordered_map<std::string, ::onnx::TensorProto*> initializers_;
  std::unordered_map<std::string, Expr> values_;
  NarrowValues narrow_;
  std::unordered_map<std::string, size_t> uses_;
  std::unordered_set<std::string> given_;
  std::vector<UnsupportedNode> unsupported_;
};

Status Importer::declare_initializers(::onnx::GraphProto& graph) {
  const uint64_t limit = options_.max_bytes != 0 ? options_.max_bytes : default_max_bytes();
  uint64_t total = 0;
  for (::onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.name().empty()) return bad_model("an initializer has no name");
    if (!given_.insert(tensor.name()).second)
      return bad_model("initializer '{}' is defined twice", tensor.name());
    Result<uint64_t> bytes = data_.check(tensor);
    if (!bytes)
      return std::move(bytes).status().with_context(fmt::format("initializer '{}'", tensor.name()));
    total += *bytes;
    if (total > limit)
      return bad_model("initializers of more than {} bytes, the limit is {}", total, limit);
    initializers_[tensor.name()] = &tensor;
    narrow_.declare(tensor.name(), tensor.data_type());
  }
  if (graph.sparse_initializer_size() > 0)
    return unsupported("sparse initializer '{}'", graph.sparse_initializer(0).values().name());
  return {};
}

Status Importer::declare_inputs(const ::onnx::GraphProto& graph) {
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  std::unordered_set<std::string> names;
  for (const auto& input : graph.input()) {
    if (input.name().empty()) return bad_model("an input has no name");
    if (!names.insert(input.name()).second)
      return bad_model("input '{}' is defined twice", input.name());
    // Before IR version 4 every initializer was listed as an input too.
    if (initializers_.count(input.name()) != 0) continue;
    given_.insert(input.name());
    narrow_.declare(input.name(), input.type().tensor_type().elem_type());
    if (auto fixed = options_.constants.find(input.name()); fixed != options_.constants.end()) {
      TRY(check_fixed_input(input, fixed->second));
      values_[input.name()] = make_constant(fixed->second, input.name());
    } else {
      inputs.push_back(&input);
    }
  }
  std::string known;
  for (const auto& input : graph.input())
    if (initializers_.count(input.name()) == 0) known += (known.empty() ? "" : ", ") + input.name();
  for (const auto& [name, value] : options_.constants)
    if (names.count(name) == 0 || initializers_.count(name) != 0)
      return usage_error("a value is given for input '{}', the model's inputs are: {}", name,
                         known.empty() ? "none" : known);
  GraphInputs made = TRY(make_inputs(inputs, options_));
  for (size_t i = 0; i < inputs.size(); ++i) {
    values_[inputs[i]->name()] = made.variables[i];
    result_.input_names.push_back(inputs[i]->name());
  }
  parameters_ = std::move(made.variables);
  result_.dims = std::move(made.dims);
  return {};
}

void Importer::count_uses(const FlatGraph& graph, const std::vector<size_t>& order,
                          const std::vector<std::string>& outputs) {
  for (size_t i : order)
    for (const std::string& name : graph.nodes[i].proto->input()) ++uses_[name];
  for (const std::string& name : outputs) ++uses_[name];
}

// Values that nobody reads any more go, so that weights used up by folding leave the memory.
void Importer::release(const std::string& name) {
  if (--uses_[name] == 0) values_.erase(name);
}

Result<Expr> Importer::value(const std::string& name) {
  if (auto it = values_.find(name); it != values_.end()) return it->second;
  ::onnx::TensorProto* tensor = initializers_.at(name);
  Result<Tensor> taken = data_.take(*tensor);
  if (!taken) return std::move(taken).status().with_context(fmt::format("initializer '{}'", name));
  result_.weight_bytes += taken->bytes();
  Expr made = make_constant(std::move(*taken), name);
  values_[name] = made;
  return made;
}

void Importer::refuse(const FlatNode& node, std::string reason) {
  unsupported_.push_back({node.label, qualified_op(*node.proto), std::move(reason)});
  for (const std::string& name : node.proto->output())
    if (!name.empty()) values_[name] = nullptr;
}

Result<std::vector<Expr>> Importer::convert(const FlatNode& node, std::vector<Expr> inputs) {
  const ConverterRow& row = *find_converter(node.proto->domain(), node.proto->op_type());
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  const int count = static_cast<int>(inputs.size());
  if (row.max_inputs >= 0 && count > row.max_inputs)
    return bad_model("{} inputs, at most {} are allowed", count, row.max_inputs);
  for (int i = 0; i < row.min_inputs; ++i)
    if (i >= count || inputs[static_cast<size_t>(i)] == nullptr)
      return bad_model("input {} of {} is missing", i, row.min_inputs);
  NodeContext context(*node.proto, node.opset, node.label, std::move(inputs), folder_, data_);
  TRY(narrow_.before(*node.proto, context));
  std::vector<Expr> outputs = TRY(row.convert(context));
  narrow_.after(*node.proto, context);
  for (size_t i = 0; i < context.num_outputs(); ++i)
    if ((i >= outputs.size() || outputs[i] == nullptr) && context.wants(i) &&
        uses_.count(node.proto->output(static_cast<int>(i))) != 0)
      return unsupported("output {} ('{}') is used", i, node.proto->output(static_cast<int>(i)));
  return outputs;
}

Status Importer::import_node(const FlatNode& node) {
  const std::string &domain = node.proto->domain(), &op = node.proto->op_type();
  if (is_standard_domain(domain) && node.opset == 0)
    return bad_model("the operator set is not imported");
  if (find_converter(domain, op) == nullptr) {
    std::string_view reason = reason_left_out(domain, op);
    refuse(node, reason.empty() ? "unknown operator" : std::string(reason));
    return {};
  }
  std::vector<Expr> inputs;
  for (const std::string& name : node.proto->input()) {
    inputs.push_back(name.empty() ? nullptr : TRY(value(name)));
    if (!name.empty() && inputs.back() == nullptr) {  // after a node that was refused
      for (const std::string& output : node.proto->output())
        if (!output.empty()) values_[output] = nullptr;
      return {};
    }
  }
  Result<std::vector<Expr>> outputs = convert(node, std::move(inputs));
  if (!outputs) {
    if (outputs.status().code() != ErrorCode::kUnsupported)
      return std::move(outputs).status().with_context(describe(node));
    refuse(node, outputs.status().to_string());
    return {};
  }
  for (size_t i = 0; i < outputs->size() && i < static_cast<size_t>(node.proto->output_size()); ++i)
    if (const std::string& name = node.proto->output(static_cast<int>(i)); uses_.count(name) != 0)
      values_[name] = (*outputs)[i];
  for (const std::string& name : node.proto->input())
    if (!name.empty()) release(name);
  ++result_.node_count;
  return {};
}

Status Importer::unsupported_error() const {
  std::string text;
  for (size_t i = 0; i < unsupported_.size() && i < kRowsInMessage; ++i)
    text += fmt::format("{}node '{}' ({}): {}", i ? "; " : "", unsupported_[i].node,
                        unsupported_[i].op, unsupported_[i].reason);
  if (unsupported_.size() > kRowsInMessage)
    text += fmt::format("; and {} more", unsupported_.size() - kRowsInMessage);
  if (unsupported_.size() == 1) return unsupported("unsupported: {}", text);
  return unsupported("{} nodes are unsupported: {}", unsupported_.size(), text);
}

Result<ImportedModel> Importer::run(::onnx::ModelProto& model) {
  register_all_ops();
  result_.opset = TRY(standard_opset(model.opset_import()));
  result_.ir_version = model.ir_version();
  result_.producer = model.producer_name();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  TRY(declare_initializers(graph));
  TRY(declare_inputs(graph));
  for (const auto& output : graph.output()) result_.output_names.push_back(output.name());
  if (result_.output_names.empty()) return bad_model("the graph has no outputs");

  FlatGraph flat = TRY(flatten(model, result_.opset));
  std::vector<size_t> order = TRY(import_order(flat, given_, result_.output_names));
  count_uses(flat, order, result_.output_names);
  for (size_t i : order) TRY(import_node(flat.nodes[i]));
  if (!unsupported_.empty()) return unsupported_error();

  std::vector<Expr> results;
  for (const auto& output : graph.output()) {
    Expr made = TRY(value(output.name()));
    const int32_t declared = output.type().tensor_type().elem_type();
    if (declared != 0) {
      Result<DType> dtype = carrier_from_onnx(declared);
      if (!dtype || *dtype != dtype_of(made) || !narrow_.is_of(output.name(), declared))
        return bad_model("output '{}' is declared as {}, but computed as {}", output.name(),
                         onnx_type_name(declared), dtype_name(dtype_of(made)));
    }
    results.push_back(std::move(made));
  }
  Expr body = results.size() == 1 ? results[0] : make_tuple(std::move(results));
  result_.module = Module(make_function(std::move(parameters_), std::move(body)));
  return std::move(result_);
}

}  // namespace

Result<ImportedModel> import_onnx(const std::filesystem::path& file, const ImportOptions& options,
                                  std::vector<UnsupportedNode>* unsupported) {
  auto import = [&]() -> Result<ImportedModel> {
    auto model = TRY(read_model_file(file));
    Importer importer(file, options);
    Result<ImportedModel> result = importer.run(*model);
    if (unsupported != nullptr) *unsupported = std::move(importer.unsupported_nodes());
    return result;
  };
  return import().with_context(file.string());
}

// A size below 0 is open as well.
bool is_open_dimension(const std::string& dim) {
  return dim.empty() || dim == "?" || dim.find_first_not_of("0123456789") != std::string::npos;
}
bool is_named_dimension(const std::string& dim) {
  return is_open_dimension(dim) && !dim.empty() && dim != "?" && dim[0] != '-';
}

Result<ModelSummary> inspect_onnx(const std::filesystem::path& file) {
  auto inspect = [&]() -> Result<ModelSummary> {
    auto model = TRY(read_model_file(file));
    ModelSummary summary;
    summary.opset = TRY(standard_opset(model->opset_import()));
    summary.ir_version = model->ir_version();
    summary.producer = model->producer_name();
    std::unordered_set<std::string> initializers;
    for (const auto& tensor : model->graph().initializer()) initializers.insert(tensor.name());
    for (const auto& input : model->graph().input())
      if (initializers.count(input.name()) == 0)
        summary.inputs.push_back(TRY(describe_input(input)));
    for (const auto& output : model->graph().output()) summary.outputs.push_back(output.name());
    for (const auto& node : model->graph().node()) ++summary.op_counts[qualified_op(node)];
    return summary;
  };
  return inspect().with_context(file.string());
}

}  // namespace collage
