// ONNX models: those of the ONNX test suite, and one that keeps its weights in a file, with fields
// of their messages changed; seldom, bytes.
#include "frontend/onnx/importer.h"

#include <gtest/gtest.h>
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_model.h"
#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage::fuzz {
namespace {

constexpr const char* kSuite = "/usr/share/libonnx-testdata/data/node";
constexpr size_t kEvery = 6, kMostBytes = 16'384;

const std::filesystem::path& model_file() {
  static const std::filesystem::path file = std::filesystem::path(scratch_folder()) / "model.onnx";
  return file;
}

Result<ImportedModel> imported(const std::string& bytes) {
  std::ofstream(model_file(), std::ios::binary) << bytes;
  ImportOptions options;
  options.max_bytes = size_t{256} << 20;
  return import_onnx(model_file(), options);
}

// y = x + w, with w in a file beside the model.
std::string with_external_data() {
  std::ofstream(std::filesystem::path(scratch_folder()) / "w.bin", std::ios::binary)
      << std::string(64, '\1');
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Add");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  onnx::TensorProto& w = *graph.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(4);
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair("location", "w.bin"), std::pair("offset", "16"), std::pair("length", "16")}) {
    onnx::StringStringEntryProto& entry = *w.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  for (onnx::ValueInfoProto* value : {graph.add_input(), graph.add_output()}) {
    onnx::TypeProto::Tensor& type = *value->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(4);
  }
  graph.mutable_input(0)->set_name("x");
  graph.mutable_output(0)->set_name("y");
  return model.SerializeAsString();
}

std::vector<std::string> model_seeds() {
  std::vector<std::filesystem::path> folders;
  for (const auto& folder : std::filesystem::directory_iterator(kSuite))
    folders.push_back(folder.path());
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> models(6, with_external_data());
  for (size_t i = 0; i < folders.size(); i += kEvery) {
    const Result<std::string> bytes = read_file(folders[i] / "model.onnx");
    if (bytes.ok() && bytes->size() <= kMostBytes && imported(*bytes).ok())
      models.push_back(*bytes);
  }
  return models;
}

Outcome run_model(const std::string& input) {
  onnx::ModelProto model;
  if (!model.ParseFromString(input)) {
    EXPECT_FALSE(imported(input).ok());
    return Outcome::kNoSyntax;
  }
  const Result<ImportedModel> read = imported(input);
  (void)inspect_onnx(model_file());
  if (!read.ok()) {
    EXPECT_NE(read.status().code(), ErrorCode::kOk);
    EXPECT_FALSE(read.status().message().empty());
    return Outcome::kRefused;
  }
  if (elements_of(read->module) > 10'000) return Outcome::kAccepted;
  // A run may refuse values (an index out of range), but nothing else.
  std::vector<Tensor> inputs;
  for (const Expr& param : read->module.main()->params)
    inputs.push_back(Tensor::zeros(param->tensor_type().dtype, param->tensor_type().shape));
  const Result<std::vector<Tensor>> values = interpret(read->module.main(), inputs);
  if (!values.ok()) {
    EXPECT_NE(values.status().code(), ErrorCode::kInternal) << values.status().to_string();
  }
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget importer() {
  register_all_ops();
  const std::vector<std::string> models = model_seeds();
  return {"importer", models,
          [models](Random& random) { return with_other_fields(random.pick(models), random); },
          run_model};
}

}  // namespace collage::fuzz
