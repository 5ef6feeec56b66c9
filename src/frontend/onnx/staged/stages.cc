#include "frontend/onnx/staged/stages.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "frontend/onnx/graph_interface.h"
#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/input_shapes.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/refusals.h"
#include "ir/visitor.h"
#include "ops/registry.h"

namespace collage::frontend {

namespace {

bool is_big_constant(const FlatNode& node) {
  return node.proto->op_type() == "Constant" && is_standard_domain(node.proto->domain()) &&
         node.proto->attribute_size() == 1 && node.proto->attribute(0).name() == "value" &&
         node.proto->attribute(0).has_t() && node.proto->output_size() == 1;
}

// Outputs may be declared by their names alone.
ModelInput describe_output(const ::onnx::ValueInfoProto& output) {
  Result<ModelInput> described = describe_input(output);
  if (described) return std::move(*described);
  ModelInput nameless;
  nameless.name = output.name();
  nameless.has_shape = false;
  return nameless;
}

// The stage's function: values that somebody after it needs, by what they are.
class StageResults {
 public:
  explicit StageResults(ImportedStage& stage) : stage_(stage) {}

  void add(const std::string& name, const Expr& value) {
    if (const auto* constant = as<ConstantNode>(value)) {
      stage_.constants[name] = constant->value;
    } else if (const auto* variable = as<VarNode>(value)) {
      stage_.aliases[name] = variable->name;
    } else {
      stage_.outputs.push_back(name);
      results_.push_back(value);
    }
  }

  void finish() {
    if (results_.empty()) return;
    Expr body = results_.size() == 1 ? results_[0] : make_tuple(results_);
    std::vector<Expr> parameters;
    for (const Expr& expr : post_order(body))
      if (const auto* variable = as<VarNode>(expr)) {
        parameters.push_back(expr);
        stage_.inputs.push_back(variable->name);
      }
    stage_.module = Module(make_function(std::move(parameters), std::move(body)));
  }

 private:
  ImportedStage& stage_;
  std::vector<Expr> results_;
};

}  // namespace

std::vector<std::string> RemainingGraph::reads() const {
  std::set<std::string> names(outputs.begin(), outputs.end());
  for (const FlatNode& node : nodes)
    for (const std::string* name : used_names(*node.proto)) names.insert(*name);
  return {names.begin(), names.end()};
}

Result<RemainingGraph> StageSource::graph_inside(const FlatNode&, const std::string&,
                                                 std::vector<std::string>&) {
  return internal_error("a model without nodes");
}
Result<Tensor> StageSource::initializer(const std::string& name) {
  return internal_error("'{}' of a model without initializers", name);
}
Result<std::string> StageSource::content() { return internal_error("a model without stages"); }

Result<std::shared_ptr<StagedModel>> StagedModel::open(const std::filesystem::path& file,
                                                       StagedModelOptions options) {
  register_all_ops();
  std::shared_ptr<StagedModel> model(new StagedModel(file, std::move(options)));
  Status read = model->read();
  if (!read.ok()) return std::move(read).with_context(file.string());
  return model;
}

Result<std::unique_ptr<::onnx::ModelProto>> StagedModel::read_message() const {
  return options_.content.empty() ? read_model_file(file_) : parse_model(options_.content);
}

Result<std::unique_ptr<::onnx::ModelProto>> StagedModel::read_message_again() const {
  std::error_code missing;
  if (options_.content.empty() && std::filesystem::last_write_time(file_, missing) != written_)
    return changed();
  return TRY(read_message().with_context(file_.string()));
}

Status StagedModel::changed() const {
  return bad_model("{}: the file has changed since it was loaded", file_.string());
}

Status StagedModel::read() {
  std::error_code missing;
  written_ = std::filesystem::last_write_time(file_, missing);
  model_ = TRY(read_message());
  const int64_t opset = TRY(standard_opset(model_->opset_import()));
  inlining_.emplace(*model_);
  ::onnx::GraphProto& graph = *model_->mutable_graph();
  std::unordered_set<std::string> given;
  const Initializers initializers = TRY(check_initializers(graph, data_, options_.max_bytes));
  for (const auto& [name, proto] : initializers) {
    given.insert(name);
    types_[name] = proto->data_type();
  }
  for (const auto* input : TRY(inputs_of(graph, initializers))) {
    given.insert(input->name());
    types_[input->name()] = input->type().tensor_type().elem_type();
    if (auto fixed = options_.constants.find(input->name()); fixed != options_.constants.end()) {
      TRY(check_fixed_input(*input, fixed->second));
      whole_.constants[input->name()] = fixed->second;
    } else {
      inputs_.push_back(TRY(describe_input(*input)));
    }
  }
  for (const auto& [name, value] : options_.constants)
    if (whole_.constants.count(name) == 0)
      return usage_error("a value is given for input '{}', which the model does not have", name);
  for (const auto& output : graph.output()) {
    outputs_.push_back(describe_output(output));
    whole_.outputs.push_back(output.name());
  }
  if (whole_.outputs.empty()) return bad_model("the graph has no outputs");
  const FlatGraph flat = TRY(flatten(*inlining_, graph, opset));
  for (size_t i : TRY(import_order(flat, given, whole_.outputs))) {
    const FlatNode& node = flat.nodes[i];
    if (is_big_constant(node)) {
      auto& tensor = *node.proto->mutable_attribute(0)->mutable_t();
      if (narrow_type(tensor.data_type()) == nullptr) {
        const std::string& name = node.proto->output(0);
        constants_[name] = TRY(data_.take(tensor).with_context(describe(node)));
        names_.insert(name);
        continue;
      }
    }
    whole_.nodes.push_back(node);
  }
  for (std::string& name : whole_.reads())
    if (initializers.count(name) != 0) names_.insert(std::move(name));
  return read_initializers(graph);
}

// The message is left without them.
Status StagedModel::read_initializers(::onnx::GraphProto& graph) {
  for (::onnx::TensorProto& proto : *graph.mutable_initializer())
    if (names_.count(proto.name()) != 0)
      initializers_[proto.name()] =
          TRY(data_.take(proto).with_context(fmt::format("initializer '{}'", proto.name())));
  graph.clear_initializer();
  return {};
}

void StagedModel::forget_initializers() { initializers_.clear(); }

Result<Tensor> StagedModel::initializer(const std::string& name) {
  if (auto it = constants_.find(name); it != constants_.end()) return it->second;
  auto it = initializers_.find(name);
  if (it == initializers_.end()) {
    auto again = TRY(read_message_again());
    TRY(read_initializers(*again->mutable_graph()));
    it = initializers_.find(name);
    if (it == initializers_.end()) return changed();
  }
  return it->second;
}

Result<std::string> StagedModel::content() {
  const std::unique_ptr<::onnx::ModelProto> model = TRY(read_message_again());
  std::vector<google::protobuf::RepeatedPtrField<::onnx::NodeProto>*> todo;
  const auto add = [&](::onnx::GraphProto& graph) -> Status {
    for (::onnx::TensorProto& tensor : *graph.mutable_initializer())
      TRY(data_.move_inline(tensor).with_context(fmt::format("initializer '{}'", tensor.name())));
    todo.push_back(graph.mutable_node());
    return {};
  };
  TRY(add(*model->mutable_graph()));
  for (::onnx::FunctionProto& function : *model->mutable_functions())
    todo.push_back(function.mutable_node());
  while (!todo.empty()) {
    auto& nodes = *todo.back();
    todo.pop_back();
    for (::onnx::NodeProto& node : nodes)
      for (::onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t()) TRY(data_.move_inline(*attribute.mutable_t()));
        if (attribute.has_g()) TRY(add(*attribute.mutable_g()));
      }
  }
  std::string content;
  if (model->ByteSizeLong() > std::numeric_limits<int32_t>::max() ||
      !model->SerializeToString(&content))
    return unsupported("the model has {} bytes, and no file holds more than 2 GB of it",
                       model->ByteSizeLong());
  return content;
}

GraphImporter StagedModel::importer_of(GraphImportOptions options) {
  options.initializer = [this](const std::string& name) -> Result<Expr> {
    if (!has_initializer(name)) return Expr();
    return make_constant(TRY(initializer(name)), name);
  };
  options.runs_on_host = options_.runs_on_host;
  GraphImporter importer(*inlining_, data_, std::move(options));
  for (const auto& [name, type] : types_) importer.narrow().declare(name, type);
  return importer;
}

Result<Module> StagedModel::import_whole(const std::vector<TensorType>& inputs, RunSizes& sizes) {
  GraphImportOptions with;
  with.keeps_calls = true;
  with.run_sizes = &sizes;
  GraphImporter importer = importer_of(std::move(with));
  for (const auto& [name, value] : whole_.constants)
    importer.define(name, make_constant(value, name));
  std::vector<Expr> params, results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    params.push_back(make_var(inputs_[i].name, inputs[i]));
    importer.define(inputs_[i].name, params.back());
  }
  for (const std::string& name : whole_.outputs) importer.keep(name);
  TRY(importer.import(whole_.nodes));
  TRY(refusal_of(importer.late(), true));
  for (const std::string& name : whole_.outputs) results.push_back(TRY(importer.value(name)));
  Expr body = results.size() == 1 ? results[0] : make_tuple(std::move(results));
  return Module(make_function(std::move(params), std::move(body)));
}

Result<ImportedStage> StagedModel::import(const RemainingGraph& rest,
                                          const TensorsByName& tensors) {
  GraphImportOptions with;
  with.in_stages = true;
  GraphImporter importer = importer_of(std::move(with));
  for (const auto& [name, value] : rest.constants)
    importer.define(name, make_constant(value, name));
  for (const auto& [name, value] : tensors)
    importer.define(name, rest.by_value.count(name) != 0
                              ? make_constant(value, name)
                              : make_var(name, TensorType{value.shape(), value.dtype()}));
  for (const std::string& name : rest.outputs) importer.keep(name);
  TRY(importer.import(rest.nodes));

  ImportedStage stage;
  stage.late = importer.late();
  TRY(refusal_of(stage.late, false));
  for (const auto& [name, value] : tensors)
    if (importer.values_read().count(name) != 0 || rest.by_value.count(name) != 0)
      stage.reads.insert(name);
  RemainingGraph next;
  next.outputs = rest.outputs;
  for (const LateNode& late : stage.late) next.nodes.push_back(late.node);
  StageResults results(stage);
  for (const std::string& name : next.reads()) {
    if (tensors.count(name) != 0 || has_initializer(name)) continue;
    const bool made_late =
        std::any_of(stage.late.begin(), stage.late.end(), [&](const LateNode& late) {
          const auto& outputs = late.node.proto->output();
          return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
        });
    if (!made_late) results.add(name, TRY(importer.value(name)));
  }
  results.finish();
  return stage;
}

Result<RemainingGraph> StagedModel::graph_inside(const FlatNode& node, const std::string& attribute,
                                                 std::vector<std::string>& inputs) {
  InlinedGraph graph =
      TRY(inline_graph(*inlining_, node, attribute, inlining_->inner_prefix(*node.proto)));
  RemainingGraph result;
  for (auto& [name, proto] : graph.initializers) result.constants[name] = TRY(data_.take(proto));
  inputs = std::move(graph.inputs);
  result.nodes = std::move(graph.nodes);
  result.outputs = std::move(graph.outputs);
  return result;
}

}  // namespace collage::frontend
