// Builds small ONNX models for tests, writes them to a folder of their own and imports them.
//
//   ModelBuilder m(17);
//   m.input("x", {"2", "3"});
//   m.node("Elu", {"x"}, {"y"}).real("alpha", 0.5);
//   m.output("y");
//   Tensor y = m.run({Tensor::from<float>({2, 3}, …)})[0];
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx-ml.pb.h>

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/onnx/importer.h"
#include "ops/interpreter.h"

namespace collage {

class NodeBuilder {
 public:
  explicit NodeBuilder(onnx::NodeProto* node) : node_(node) {}
  NodeBuilder& integer(const std::string& name, int64_t value);
  NodeBuilder& real(const std::string& name, float value);
  NodeBuilder& text(const std::string& name, const std::string& value);
  NodeBuilder& texts(const std::string& name, const std::vector<std::string>& values);
  NodeBuilder& ints(const std::string& name, const std::vector<int64_t>& values);
  NodeBuilder& reals(const std::string& name, const std::vector<float>& values);
  NodeBuilder& tensor(const std::string& name, const Tensor& value);
  NodeBuilder& graph(const std::string& name, const onnx::GraphProto& value);
  NodeBuilder& name(const std::string& name);
  NodeBuilder& domain(const std::string& domain);
  onnx::NodeProto& proto() { return *node_; }

 private:
  onnx::AttributeProto* add(const std::string& name, onnx::AttributeProto::AttributeType type);
  onnx::NodeProto* node_;
};

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17);
  ~ModelBuilder();
  ModelBuilder(const ModelBuilder&) = delete;

  // Dimensions as text: a number, a name, or "?" for one without either.
  ModelBuilder& input(const std::string& name, const std::vector<std::string>& dims,
                      int32_t type = onnx::TensorProto::FLOAT);
  ModelBuilder& constant(const std::string& name, const Tensor& value);
  ModelBuilder& output(const std::string& name, int32_t type = 0);
  NodeBuilder node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs);
  onnx::ModelProto& proto() { return proto_; }
  onnx::GraphProto& graph() { return *proto_.mutable_graph(); }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path file() const { return folder_ / "model.onnx"; }

  std::filesystem::path write();  // gives file()
  Result<ImportedModel> import(const ImportOptions& options = {},
                               std::vector<UnsupportedNode>* unsupported = nullptr);
  // Imports and interprets; a failure fails the test and gives empty tensors.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const ImportOptions& options = {});
  // Names of the operators called, in post-dfs order.
  std::vector<std::string> ops(const ImportOptions& options = {});

 private:
  onnx::ModelProto proto_;
  std::filesystem::path folder_;
};

onnx::TensorProto to_proto(const std::string& name, const Tensor& tensor);
std::vector<std::string> called_ops(const Module& module);
// The first call of the operator; null where there is none.
const CallNode* find_call(const ImportedModel& model, const std::string& op);
std::vector<double> values_of(const Tensor& tensor);

inline Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(std::move(shape), values);
}
inline Tensor int64s(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}
// 0, 1, 2 … times `step`.
Tensor ramp(Shape shape, float step = 1.0f);

// Shape and values, to 1e-5.
void expect_values(const Tensor& tensor, const Shape& shape, const std::vector<double>& values);
// The import fails with that code and a message that holds `part`.
void expect_error(const Result<ImportedModel>& result, ErrorCode code, const std::string& part);

}  // namespace collage
