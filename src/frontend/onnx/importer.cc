#include "frontend/onnx/importer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/graph_interface.h"
#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/input_shapes.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/refusals.h"
#include "frontend/onnx/tensor_data.h"
#include "ops/registry.h"

namespace collage {

namespace {

using namespace frontend;  // NOLINT: this file is the front of that namespace

// One import of a whole model, whose initializers leave its message as they are used.
class Importer {
 public:
  Importer(const std::filesystem::path& file, const ImportOptions& options)
      : options_(options), data_(file, options.data_roots) {}

  Result<ImportedModel> run(::onnx::ModelProto& model);
  std::vector<UnsupportedNode>& unsupported_nodes() { return unsupported_; }

 private:
  Status declare_inputs(const ::onnx::GraphProto& graph, GraphImporter& importer);
  Result<Expr> initializer(const std::string& name);

  const ImportOptions& options_;
  TensorData data_;
  Initializers initializers_;
  ImportedModel result_;
  std::vector<Expr> parameters_;
  std::unordered_set<std::string> given_;
  std::vector<UnsupportedNode> unsupported_;
};

Status Importer::declare_inputs(const ::onnx::GraphProto& graph, GraphImporter& importer) {
  std::vector<const ::onnx::ValueInfoProto*> inputs = TRY(inputs_of(graph, initializers_));
  std::string known;
  for (const auto* input : inputs) {
    known += (known.empty() ? "" : ", ") + input->name();
    given_.insert(input->name());
    importer.narrow().declare(input->name(), input->type().tensor_type().elem_type());
  }
  for (const auto& [name, value] : options_.constants) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&name = name](const auto* i) { return i->name() == name; });
    if (input == inputs.end())
      return usage_error("a value is given for input '{}', the model's inputs are: {}", name,
                         known.empty() ? "none" : known);
    TRY(check_fixed_input(**input, value));
    importer.define(name, make_constant(value, name));
    inputs.erase(input);
  }
  GraphInputs made = TRY(make_inputs(inputs, options_));
  for (size_t i = 0; i < inputs.size(); ++i) {
    importer.define(inputs[i]->name(), made.variables[i]);
    result_.input_names.push_back(inputs[i]->name());
  }
  parameters_ = std::move(made.variables);
  result_.dims = std::move(made.dims);
  return {};
}

Result<Expr> Importer::initializer(const std::string& name) {
  auto it = initializers_.find(name);
  if (it == initializers_.end()) return Expr();
  Result<Tensor> taken = data_.take(*it->second);
  if (!taken) return std::move(taken).status().with_context(fmt::format("initializer '{}'", name));
  result_.weight_bytes += taken->bytes();
  return make_constant(std::move(*taken), name);
}

Result<ImportedModel> Importer::run(::onnx::ModelProto& model) {
  register_all_ops();
  result_.opset = TRY(standard_opset(model.opset_import()));
  result_.ir_version = model.ir_version();
  result_.producer = model.producer_name();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  initializers_ = TRY(check_initializers(graph, data_, options_.max_bytes));
  GraphImportOptions with;
  with.initializer = [this](const std::string& name) { return initializer(name); };
  const Inlining inlining(model);
  GraphImporter importer(inlining, data_, std::move(with));
  for (const auto& [name, tensor] : initializers_) {
    given_.insert(name);
    importer.narrow().declare(name, tensor->data_type());
  }
  TRY(declare_inputs(graph, importer));
  for (const auto& output : graph.output()) result_.output_names.push_back(output.name());
  if (result_.output_names.empty()) return bad_model("the graph has no outputs");

  const FlatGraph flat = TRY(flatten(inlining, graph, result_.opset));
  std::vector<FlatNode> nodes;
  for (size_t i : TRY(import_order(flat, given_, result_.output_names)))
    nodes.push_back(flat.nodes[i]);
  for (const std::string& name : result_.output_names) importer.keep(name);
  TRY(importer.import(nodes));
  result_.node_count = importer.node_count();
  TRY(refusal_of(importer.late(), true, &unsupported_));

  std::vector<Expr> results;
  for (const auto& output : graph.output()) {
    results.push_back(TRY(importer.value(output.name())));
    TRY(check_output(output, results.back(), importer.narrow()));
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
