#include "dynamic/host/host_node.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/onnx/tensor_data.h"
#include "ops/half.h"
#include "runtime/dispatch.h"

namespace collage::dynamic {

HostNode::HostNode(const std::string& op, int outputs) {
  node_.set_op_type(op);
  for (int i = 0; i < outputs; ++i) node_.add_output("y" + std::to_string(i));
}

HostNode& HostNode::domain(const std::string& domain) {
  node_.set_domain(domain);
  return *this;
}

HostNode& HostNode::integer(const std::string& name, int64_t value) {
  auto* attribute = node_.add_attribute();
  attribute->set_name(name);
  attribute->set_type(::onnx::AttributeProto::INT);
  attribute->set_i(value);
  return *this;
}

HostNode& HostNode::real(const std::string& name, float value) {
  auto* attribute = node_.add_attribute();
  attribute->set_name(name);
  attribute->set_type(::onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
  return *this;
}

Tensors HostNode::run(const Tensors& inputs) const {
  Result<Tensors> results = run_host_operator(node_, 17, inputs);
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  return results.ok() ? *results : Tensors(static_cast<size_t>(node_.output_size()));
}

std::string HostNode::error(const Tensors& inputs, int64_t opset) const {
  Result<Tensors> results = run_host_operator(node_, opset, inputs);
  EXPECT_FALSE(results.ok());
  if (results.ok()) return "";
  EXPECT_EQ(results.status().code(), ErrorCode::kBadModel);
  return results.status().to_string();
}

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> dtypes = {
      DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
      DType::kInt16,   DType::kInt32,   DType::kInt64,   DType::kUInt8,    DType::kUInt16,
      DType::kUInt32,  DType::kUInt64,  DType::kBool};
  return dtypes;
}

Tensor as_dtype(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::empty(dtype, shape);
  EXPECT_EQ(static_cast<size_t>(tensor.size()), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_half(dtype)) {
      tensor.data<uint16_t>()[i] = float_to_half(static_cast<float>(values[i]), dtype);
    } else if (dtype == DType::kBool) {
      tensor.data<uint8_t>()[i] = values[i] != 0 ? 1 : 0;
    } else {
      dispatch_number(dtype,
                      [&]<typename T>(Tag<T>) { tensor.data<T>()[i] = static_cast<T>(values[i]); });
    }
  }
  return tensor;
}

Tensor small_integers(DType dtype, const Shape& shape, int64_t low, int64_t high,
                      std::mt19937& random) {
  const bool negative = is_float(dtype) || dtype == DType::kInt8 || dtype == DType::kInt16 ||
                        dtype == DType::kInt32 || dtype == DType::kInt64;
  std::uniform_int_distribution<int64_t> pick(negative ? low : 0, high);
  std::vector<double> values(static_cast<size_t>(num_elements(shape)));
  for (double& value : values) value = static_cast<double>(pick(random));
  return as_dtype(dtype, shape, values);
}

std::vector<int64_t> integers(const Tensor& tensor) {
  std::vector<int64_t> values;
  if (!tensor.defined()) return values;
  EXPECT_EQ(tensor.dtype(), DType::kInt64);
  for (int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.element_as_int64(i));
  return values;
}

namespace {

namespace fs = std::filesystem;

Tensor read_tensor(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  ::onnx::TensorProto proto;
  EXPECT_TRUE(proto.ParseFromIstream(&stream)) << file;
  Result<Tensor> tensor = frontend::TensorData(file.parent_path()).take(proto);
  EXPECT_TRUE(tensor.ok()) << file;
  return tensor.ok() ? *tensor : Tensor();
}

void check_case(const fs::path& folder) {
  std::ifstream stream(folder / "model.onnx", std::ios::binary);
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromIstream(&stream));
  ASSERT_EQ(model.graph().node_size(), 1);
  const ::onnx::NodeProto& node = model.graph().node(0);
  const fs::path data = folder / "test_data_set_0";
  Tensors inputs;
  int given = 0;
  for (const std::string& name : node.input())
    inputs.push_back(
        name.empty() ? Tensor() : read_tensor(data / ("input_" + std::to_string(given++) + ".pb")));
  Result<Tensors> results = run_host_operator(node, model.opset_import(0).version(), inputs);
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  int at = 0;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const Tensor expected = read_tensor(data / ("output_" + std::to_string(at++) + ".pb"));
    const Tensor& got = (*results)[static_cast<size_t>(i)];
    ASSERT_EQ(got.dtype(), expected.dtype());
    ASSERT_EQ(got.shape(), expected.shape());
    EXPECT_EQ(std::memcmp(got.raw(), expected.raw(), got.bytes()), 0) << "output " << i;
  }
}

}  // namespace

int check_suite(const std::string& stem) {
  const char* suite = std::getenv("COLLAGE_ONNX_SUITE");
  const fs::path nodes =
      fs::path(suite != nullptr ? suite : "/usr/share/libonnx-testdata/data") / "node";
  EXPECT_TRUE(fs::is_directory(nodes)) << "install libonnx-testdata";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(nodes)) {
    if (entry.path().filename().string().rfind("test_" + stem, 0) != 0) continue;
    SCOPED_TRACE(entry.path().string());
    check_case(entry.path());
    ++count;
  }
  return count;
}

}  // namespace collage::dynamic
