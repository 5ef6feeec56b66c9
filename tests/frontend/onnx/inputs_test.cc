// Dynamic dimensions, initializers listed as inputs, inputs fixed to a value, summaries.
#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using onnx::TensorProto;

ModelBuilder& two_inputs(ModelBuilder& m) {
  m.input("ids", {"batch", "seq"}).input("mask", {"batch", "1", "seq"});
  m.node("Relu", {"ids"}, {"a"});
  m.node("Relu", {"mask"}, {"b"});
  m.output("a").output("b");
  return m;
}

Shape input_shape(const ImportedModel& model, size_t i) {
  return model.module.main()->params[i]->tensor_type().shape;
}

TEST(Inputs, DimensionWithoutAValueNamesTheFlag) {
  ModelBuilder m;
  two_inputs(m);
  expect_error(m.import(), ErrorCode::kBadModel,
               "input 'ids' (batch, seq): dimension 'batch' has no value; give --dim batch=1 --dim "
               "seq=1 or --shapes ids=1x1");
}

TEST(Inputs, OnlyWhatIsMissingIsAskedFor) {
  ModelBuilder m;
  two_inputs(m);
  ImportOptions options;
  options.dims["seq"] = 128;
  expect_error(m.import(options), ErrorCode::kBadModel,
               "dimension 'batch' has no value; give --dim batch=1 or --shapes ids=1x128");
}

TEST(Inputs, DimensionsByName) {
  ModelBuilder m;
  two_inputs(m);
  ImportOptions options;
  options.dims = {{"batch", 2}, {"seq", 16}};
  Result<ImportedModel> model = m.import(options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(input_shape(*model, 0), (Shape{2, 16}));
  EXPECT_EQ(input_shape(*model, 1), (Shape{2, 1, 16}));
  EXPECT_EQ(model->input_names, (std::vector<std::string>{"ids", "mask"}));
  EXPECT_EQ(model->output_names, (std::vector<std::string>{"a", "b"}));
}

TEST(Inputs, AShapeGivesItsDimensionsToOtherInputs) {
  ModelBuilder m;
  two_inputs(m);
  ImportOptions options;
  options.shapes["ids"] = {3, 7};
  Result<ImportedModel> model = m.import(options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(input_shape(*model, 1), (Shape{3, 1, 7}));
  EXPECT_EQ(model->dims, (std::map<std::string, int64_t>{{"batch", 3}, {"seq", 7}}));
}

TEST(Inputs, DimensionWithoutANameNeedsAShape) {
  ModelBuilder m;
  m.input("x", {"?", "3"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel,
               "input 'x' (?, 3): dimension 0 (?) has no value; give --shapes x=1x3");
}

TEST(Inputs, NegativeDimensionCountsAsOpen) {
  ModelBuilder m;
  m.input("x", {"-1", "3"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "dimension 0 (-1) has no value");
}

TEST(Inputs, WithoutAnyShape) {
  ModelBuilder m;
  m.input("x", {});
  m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "input 'x' has no shape: give --shapes x=");
  ImportOptions options;
  options.shapes["x"] = {2};
  EXPECT_TRUE(m.import(options).ok());
}

TEST(Inputs, HugeDimension) {
  ModelBuilder m;
  m.input("x", {"9223372036854775807"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "input 'x': dimension 9223372036854775807");
}

TEST(Inputs, OptionsThatNameNothingAreUsageErrors) {
  ModelBuilder m;
  two_inputs(m);
  ImportOptions shapes;
  shapes.shapes["x"] = {1};
  expect_error(m.import(shapes), ErrorCode::kUsage,
               "a shape is given for input 'x', the model's inputs are: ids, mask");
  ImportOptions dims;
  dims.dims["N"] = 1;
  expect_error(m.import(dims), ErrorCode::kUsage, "the model's named dimensions are: batch, seq");
  ImportOptions constants;
  constants.constants["x"] = Tensor::scalar<float>(1);
  expect_error(m.import(constants), ErrorCode::kUsage,
               "a value is given for input 'x', the model's inputs are: ids, mask");
}

TEST(Inputs, ShapesThatContradictTheModelOrEachOther) {
  ModelBuilder m;
  two_inputs(m);
  ImportOptions options;
  options.shapes["mask"] = {2, 5, 8};
  expect_error(m.import(options), ErrorCode::kBadModel,
               "input 'mask' has shape (batch, 1, seq), which (2, 5, 8) does not fit");
  options.shapes["mask"] = {2, 1, 8};
  options.shapes["ids"] = {3, 8};
  expect_error(m.import(options), ErrorCode::kBadModel, "dimension 'batch'");
  options.shapes.erase("ids");
  options.dims["batch"] = 4;
  expect_error(m.import(options), ErrorCode::kUsage, "dimension 'batch' is given as 4");
}

TEST(Inputs, InitializersListedAsInputsAreConstants) {
  ModelBuilder m;
  m.proto().set_ir_version(3);
  m.input("x", {"2"}).input("w", {"2"}).constant("w", floats({2}, {10, 20}));
  m.node("Add", {"x", "w"}, {"y"});
  m.output("y");
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->input_names, (std::vector<std::string>{"x"}));
  expect_values(m.run({floats({2}, {1, 2})})[0], {2}, {11, 22});
}

TEST(Inputs, FixedToAValue) {
  ModelBuilder m;
  m.input("x", {"6"}).input("shape", {"2"}, TensorProto::INT64);
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.output("y");
  ImportOptions options;
  options.constants["shape"] = int64s({2, 3});
  Result<ImportedModel> model = m.import(options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->input_names, (std::vector<std::string>{"x"}));
  EXPECT_EQ(model->module.main()->result_type().tensor().shape, (Shape{2, 3}));
  options.constants["shape"] = Tensor::scalar<float>(1);
  expect_error(m.import(options), ErrorCode::kUsage, "input 'shape' is int64, the value given is");
}

TEST(Inputs, UnsupportedElementTypes) {
  ModelBuilder m;
  m.input("x", {"2"}, TensorProto::STRING);
  m.node("Identity", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported, "input 'x': element type STRING");
}

TEST(Inputs, Summary) {
  ModelBuilder m(13);
  two_inputs(m);
  m.proto().set_producer_name("tests");
  Result<ModelSummary> summary = inspect_onnx(m.write());
  ASSERT_TRUE(summary.ok()) << summary.status().to_string();
  EXPECT_EQ(summary->opset, 13);
  EXPECT_EQ(summary->producer, "tests");
  ASSERT_EQ(summary->inputs.size(), 2u);
  EXPECT_EQ(summary->inputs[1].name, "mask");
  EXPECT_EQ(summary->inputs[1].dims, (std::vector<std::string>{"batch", "1", "seq"}));
  EXPECT_EQ(summary->outputs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(summary->op_counts, (std::map<std::string, size_t>{{"Relu", 2}}));
}

}  // namespace
}  // namespace collage
