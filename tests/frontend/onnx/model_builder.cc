#include "frontend/onnx/model_builder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

int32_t onnx_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return TensorProto::FLOAT;
    case DType::kFloat64:
      return TensorProto::DOUBLE;
    case DType::kFloat16:
      return TensorProto::FLOAT16;
    case DType::kBFloat16:
      return TensorProto::BFLOAT16;
    case DType::kInt8:
      return TensorProto::INT8;
    case DType::kInt32:
      return TensorProto::INT32;
    case DType::kInt64:
      return TensorProto::INT64;
    case DType::kUInt8:
      return TensorProto::UINT8;
    case DType::kBool:
      return TensorProto::BOOL;
    default:
      std::abort();
  }
}

// So that a test that failed to run may go on and look at results.
std::vector<Tensor> nothing() {
  return std::vector<Tensor>(8, Tensor::zeros(DType::kFloat32, {0}));
}

}  // namespace

AttributeProto* NodeBuilder::add(const std::string& name, AttributeProto::AttributeType type) {
  AttributeProto* attribute = node_->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}
NodeBuilder& NodeBuilder::integer(const std::string& name, int64_t value) {
  add(name, AttributeProto::INT)->set_i(value);
  return *this;
}
NodeBuilder& NodeBuilder::real(const std::string& name, float value) {
  add(name, AttributeProto::FLOAT)->set_f(value);
  return *this;
}
NodeBuilder& NodeBuilder::text(const std::string& name, const std::string& value) {
  add(name, AttributeProto::STRING)->set_s(value);
  return *this;
}
NodeBuilder& NodeBuilder::texts(const std::string& name, const std::vector<std::string>& values) {
  AttributeProto* attribute = add(name, AttributeProto::STRINGS);
  for (const std::string& value : values) attribute->add_strings(value);
  return *this;
}
NodeBuilder& NodeBuilder::ints(const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto* attribute = add(name, AttributeProto::INTS);
  for (int64_t value : values) attribute->add_ints(value);
  return *this;
}
NodeBuilder& NodeBuilder::reals(const std::string& name, const std::vector<float>& values) {
  AttributeProto* attribute = add(name, AttributeProto::FLOATS);
  for (float value : values) attribute->add_floats(value);
  return *this;
}
NodeBuilder& NodeBuilder::tensor(const std::string& name, const Tensor& value) {
  *add(name, AttributeProto::TENSOR)->mutable_t() = to_proto("", value);
  return *this;
}
NodeBuilder& NodeBuilder::graph(const std::string& name, const onnx::GraphProto& value) {
  *add(name, AttributeProto::GRAPH)->mutable_g() = value;
  return *this;
}
NodeBuilder& NodeBuilder::name(const std::string& name) {
  node_->set_name(name);
  return *this;
}
NodeBuilder& NodeBuilder::domain(const std::string& domain) {
  node_->set_domain(domain);
  return *this;
}

ModelBuilder::ModelBuilder(int64_t opset) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "collage_frontend_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  folder_ = pattern;
  proto_.set_ir_version(8);
  proto_.add_opset_import()->set_version(opset);
  graph().set_name("test");
}

ModelBuilder::~ModelBuilder() { std::filesystem::remove_all(folder_); }

ModelBuilder& ModelBuilder::input(const std::string& name, const std::vector<std::string>& dims,
                                  int32_t type) {
  onnx::ValueInfoProto* info = graph().add_input();
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const std::string& text : dims) {
    auto* dim = tensor->mutable_shape()->add_dim();
    char* end = nullptr;
    const int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (*end == '\0') {
      dim->set_dim_value(value);
    } else if (text != "?") {
      dim->set_dim_param(text);
    }
  }
  return *this;
}

ModelBuilder& ModelBuilder::constant(const std::string& name, const Tensor& value) {
  *graph().add_initializer() = to_proto(name, value);
  return *this;
}

ModelBuilder& ModelBuilder::output(const std::string& name, int32_t type) {
  onnx::ValueInfoProto* info = graph().add_output();
  info->set_name(name);
  if (type != 0) info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return *this;
}

NodeBuilder ModelBuilder::node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs) {
  onnx::NodeProto* node = graph().add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return NodeBuilder(node);
}

std::filesystem::path ModelBuilder::write() {
  std::ofstream stream(file(), std::ios::binary | std::ios::trunc);
  if (!proto_.SerializeToOstream(&stream)) std::abort();
  return file();
}

Result<ImportedModel> ModelBuilder::import(const ImportOptions& options,
                                           std::vector<UnsupportedNode>* unsupported) {
  return import_onnx(write(), options, unsupported);
}

std::vector<Tensor> ModelBuilder::run(const std::vector<Tensor>& inputs,
                                      const ImportOptions& options) {
  Result<ImportedModel> model = import(options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!model) return nothing();
  Result<std::vector<Tensor>> outputs = interpret(model->module.main(), inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
  return outputs ? *outputs : nothing();
}

std::vector<std::string> ModelBuilder::ops(const ImportOptions& options) {
  Result<ImportedModel> model = import(options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model ? called_ops(model->module) : std::vector<std::string>();
}

onnx::TensorProto to_proto(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_type(tensor.dtype()));
  for (int64_t extent : tensor.shape()) proto.add_dims(extent);
  proto.set_raw_data(tensor.raw(), tensor.bytes());
  return proto;
}

std::vector<std::string> called_ops(const Module& module) {
  std::vector<std::string> names;
  for (const Expr& expr : post_order(module.main()->body))
    if (const auto* call = as<CallNode>(expr)) names.push_back(call->op->name);
  return names;
}

const CallNode* find_call(const ImportedModel& model, const std::string& op) {
  for (const Expr& expr : post_order(model.module.main()->body))
    if (const CallNode* call = as_op(expr, op)) return call;
  return nullptr;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.element_as_double(i));
  return values;
}

Tensor ramp(Shape shape, float step) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i) * step;
  return tensor;
}

void expect_values(const Tensor& tensor, const Shape& shape, const std::vector<double>& values) {
  EXPECT_EQ(tensor.shape(), shape);
  EXPECT_THAT(values_of(tensor), ::testing::Pointwise(::testing::DoubleNear(1e-5), values));
}

void expect_error(const Result<ImportedModel>& result, ErrorCode code, const std::string& part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status().to_string();
  EXPECT_THAT(result.status().to_string(), ::testing::HasSubstr(part));
  EXPECT_EQ(result.status().to_string().find('\n'), std::string::npos);
}

}  // namespace collage
