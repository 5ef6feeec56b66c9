// What concerns whole graphs: folding, unsupported nodes, operator sets, names.
#include "frontend/onnx/model_builder.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Folding, ShapeArithmeticVanishes) {
  // Reshape(x, Concat(Gather(Shape(x), 0), -1)), as exporters write a flatten.
  ModelBuilder m;
  m.input("x", {"batch", "3", "4"});
  m.constant("zero", Tensor::scalar<int64_t>(0)).constant("rest", int64s({-1}));
  m.constant("axes", int64s({0}));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"n"});
  m.node("Unsqueeze", {"n", "axes"}, {"n1"});
  m.node("Concat", {"n1", "rest"}, {"target"}).integer("axis", 0);
  m.node("Reshape", {"x", "target"}, {"y"});
  m.output("y");
  ImportOptions options;
  options.dims["batch"] = 5;
  EXPECT_THAT(m.ops(options), ElementsAre("reshape"));
  EXPECT_EQ(m.run({ramp({5, 3, 4})}, options)[0].shape(), (Shape{5, 12}));
}

TEST(Folding, ArithmeticOnFloatsInBetween) {
  // sizes = int(floor(float(shape) * 1.5))
  ModelBuilder m;
  m.input("x", {"4", "6"}).constant("f", floats({2}, {1.5, 1.5}));
  m.node("Shape", {"x"}, {"s"});
  m.node("Cast", {"s"}, {"sf"}).integer("to", onnx::TensorProto::FLOAT);
  m.node("Mul", {"sf", "f"}, {"g"});
  m.node("Floor", {"g"}, {"h"});
  m.node("Cast", {"h"}, {"t"}).integer("to", onnx::TensorProto::INT64);
  m.node("ConstantOfShape", {"t"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), IsEmpty());
  EXPECT_EQ(m.run({ramp({4, 6})})[0].shape(), (Shape{6, 9}));
}

TEST(Folding, LargeWeightsStayCalls) {
  ModelBuilder m;
  m.input("x", {"1", "512"}).constant("w", ramp({512, 512}, 1e-6f));
  m.node("Transpose", {"w"}, {"t"});
  m.node("MatMul", {"x", "t"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("transpose", "nn.matmul"));
}

TEST(Folding, DeadNodesAreNotImported) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Relu", {"x"}, {"y"});
  m.node("Loop", {"x"}, {"unused"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.relu"));
}

TEST(Unsupported, EveryNodeIsListedAtOnce) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Unique", {"x"}, {"a"}).name("u");
  m.node("Relu", {"a"}, {"b"});  // after a refused node: not reported
  m.node("Frobnicate", {"b"}, {"c"}).domain("com.example");
  m.node("QAttention", {"x", "x"}, {"d"}).domain("com.microsoft").name("q");
  m.node("Add", {"c", "d"}, {"y"});
  m.output("y");
  std::vector<UnsupportedNode> rows;
  Result<ImportedModel> model = m.import({}, &rows);
  expect_error(model, ErrorCode::kUnsupported,
               "3 nodes are unsupported: node 'u' (Unique): the shape of the result depends on "
               "values; node 'Frobnicate_2' (com.example::Frobnicate): unknown operator; node 'q'");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].op, "com.example::Frobnicate");
  EXPECT_EQ(rows[2].reason, "quantised types");
}

TEST(Unsupported, LongListsAreCutInTheMessageOnly) {
  ModelBuilder m;
  m.input("x", {"2"});
  for (int i = 0; i < 20; ++i) m.node("Unique", {"x"}, {"y" + std::to_string(i)});
  for (int i = 0; i < 20; ++i) m.output("y" + std::to_string(i));
  std::vector<UnsupportedNode> rows;
  expect_error(m.import({}, &rows), ErrorCode::kUnsupported, "; and 12 more");
  EXPECT_EQ(rows.size(), 20u);
}

TEST(Unsupported, TargetsComputedAtRunTime) {
  ModelBuilder m;
  m.input("x", {"6"}).input("shape", {"2"}, onnx::TensorProto::INT64);
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported,
               "node 'Reshape_0' (Reshape): shape is computed at run time");
}

TEST(Unsupported, SecondOutputOnlyWhenItIsRead) {
  ModelBuilder m;
  m.input("x", {"1", "1", "4"});
  for (const char* name : {"s", "b", "m", "v"}) m.constant(name, Tensor::from<float>({1}, {1}));
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "mean"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.batch_norm"));
  m.output("mean");
  expect_error(m.import(), ErrorCode::kUnsupported, "output 1 ('mean') is used");
}

TEST(Opsets, NewerThanKnownIsUnsupported) {
  ModelBuilder m(99);
  m.input("x", {"2"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported, "operator set 99; the newest supported is 28");
}

TEST(Opsets, MissingAndContradictingImports) {
  ModelBuilder none;
  none.input("x", {"2"});
  none.node("Relu", {"x"}, {"y"});
  none.output("y");
  none.proto().clear_opset_import();
  expect_error(none.import(), ErrorCode::kBadModel, "the operator set is not imported");
  none.proto().add_opset_import()->set_version(11);
  none.proto().add_opset_import()->set_version(12);
  expect_error(none.import(), ErrorCode::kBadModel, "imported twice, in versions 11 and 12");
}

TEST(Names, OriginIsTheNodeOrItsOperatorAndPosition) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Relu", {"x"}, {"a"}).name("layer/relu");
  m.node("Neg", {"a"}, {"y"});
  m.output("y");
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok());
  std::vector<std::string> origins;
  for (const Expr& expr : post_order(model->module.main()->body))
    if (as<CallNode>(expr) != nullptr) origins.push_back(expr->origin());
  EXPECT_THAT(origins, ElementsAre("layer/relu", "Neg_1"));
}

TEST(Names, OutputsThatAreInputsOrConstants) {
  ModelBuilder m;
  m.input("x", {"2"}).constant("w", floats({1}, {7}));
  m.output("x").output("w");
  std::vector<Tensor> results = m.run({floats({2}, {1, 2})});
  ASSERT_EQ(results.size(), 2u);
  expect_values(results[0], {2}, {1, 2});
  expect_values(results[1], {1}, {7});
}

}  // namespace
}  // namespace collage
