// Operators of the domain com.microsoft: which calls they become, so that passes and backends see
// what they know, and what is refused. Their values stand against ONNX Runtime's in
// tests/conformance/microsoft_test.py.
#include "frontend/onnx/model_builder.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

NodeBuilder microsoft(ModelBuilder& m, const std::string& op,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  return m.node(op, inputs, outputs).domain("com.microsoft");
}

TEST(Microsoft, GeluWithABias) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).constant("b", ramp({3}));
  microsoft(m, "FastGelu", {"x", "b"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.bias_add", "nn.gelu"));
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(find_call(*model, "nn.gelu")->attrs.string("approximate"), "tanh");
}

TEST(Microsoft, QuickGeluOfAlphaOneIsSilu) {
  ModelBuilder m;
  m.input("x", {"3"});
  microsoft(m, "QuickGelu", {"x"}, {"y"}).real("alpha", 1.0F);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.silu"));
}

TEST(Microsoft, SkipLayerNormGivesItsSumToo) {
  ModelBuilder m;
  m.input("x", {"1", "2", "3"}).input("s", {"2", "3"});
  m.constant("g", ramp({3})).constant("b", ramp({3}));
  microsoft(m, "SkipLayerNormalization", {"x", "s", "g", "b"}, {"y", "", "", "sum"});
  m.output("y").output("sum");
  EXPECT_THAT(m.ops(), ElementsAre("add", "nn.layer_norm"));
}

TEST(Microsoft, NormsOfHalfPrecisionAreComputedInSingle) {
  ModelBuilder m;
  for (const char* name : {"x", "s"}) m.input(name, {"1", "2", "3"}, onnx::TensorProto::FLOAT16);
  m.input("g", {"3"}, onnx::TensorProto::FLOAT16);
  microsoft(m, "SkipLayerNormalization", {"x", "s", "g"}, {"y"});
  m.output("y", onnx::TensorProto::FLOAT16);
  EXPECT_THAT(m.ops(), ElementsAre("cast", "cast", "add", "cast", "nn.layer_norm", "cast"));
}

TEST(Microsoft, OutputsOfTrainingAreRefusedWhereTheyAreRead) {
  ModelBuilder m;
  m.input("x", {"1", "2", "3"}).constant("g", ramp({3}));
  microsoft(m, "SkipLayerNormalization", {"x", "x", "g"}, {"y", "mean", "deviation", "sum"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("add", "nn.layer_norm"));
  m.output("deviation");
  expect_error(m.import(), ErrorCode::kUnsupported,
               "(com.microsoft::SkipLayerNormalization): output 2 ('deviation') is used");
}

TEST(Microsoft, RmsNormInEitherDomain) {
  for (const char* domain : {"", "com.microsoft"}) {
    ModelBuilder m;
    m.input("x", {"2", "3"}).constant("g", ramp({3}));
    m.node("SimplifiedLayerNormalization", {"x", "g"}, {"y"}).domain(domain);
    m.output("y");
    EXPECT_THAT(m.ops(), ElementsAre("nn.rms_norm"));
  }
}

TEST(Microsoft, FusedConvComesApart) {
  ModelBuilder m;
  m.input("x", {"1", "2", "4", "4"}).input("z", {"1", "3", "4", "4"});
  m.constant("w", ramp({3, 2, 1, 1})).constant("b", ramp({3}));
  microsoft(m, "FusedConv", {"x", "w", "b", "z"}, {"y"}).text("activation", "Relu");
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.conv2d", "nn.bias_add", "add", "nn.relu"));
}

TEST(Microsoft, FusedMatMulTransposesByFlag) {
  ModelBuilder m;
  m.input("a", {"2", "3", "4"}).input("b", {"2", "5", "4"});
  microsoft(m, "FusedMatMul", {"a", "b"}, {"y"}).integer("transB", 1).real("alpha", 0.5F);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.matmul", "multiply"));
}

// Codes 0 to 15 about a zero point of 8, times 2: the first 12 of them, since K is 12.
TEST(Microsoft, WeightsOfFourBitsBecomeAConstant) {
  Tensor packed = Tensor::zeros(DType::kUInt8, {1, 1, 8});
  for (int i = 0; i < 8; ++i)
    packed.data<uint8_t>()[i] = static_cast<uint8_t>(2 * i | (2 * i + 1) << 4);
  ModelBuilder m;
  m.input("x", {"1", "12"}).constant("w", packed).constant("s", floats({1, 1}, {2}));
  microsoft(m, "MatMulNBits", {"x", "w", "s"}, {"y"})
      .integer("K", 12)
      .integer("N", 1)
      .integer("bits", 4)
      .integer("block_size", 16);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.dense"));
  std::vector<float> one(12, 0);
  one[11] = 1;
  expect_values(m.run({floats({1, 12}, one)})[0], {1, 1}, {2 * (11 - 8)});
}

TEST(Microsoft, PackedWeightsMustBeAsLongAsTheySay) {
  ModelBuilder m;
  m.input("x", {"1", "40"}).constant("w", Tensor::zeros(DType::kUInt8, {1, 1, 8}));
  m.constant("s", floats({1, 3}, {1, 1, 1}));
  microsoft(m, "MatMulNBits", {"x", "w", "s"}, {"y"})
      .integer("K", 40)
      .integer("N", 1)
      .integer("block_size", 16);
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel,
               "B is uint8 of shape (1, 1, 8), not uint8 of shape (1, 3, 8)");
}

TEST(Microsoft, AttentionIsOneProductAndOneCall) {
  ModelBuilder m;
  m.input("x", {"1", "3", "4"}).constant("w", ramp({4, 12})).constant("b", ramp({12}));
  microsoft(m, "Attention", {"x", "w", "b"}, {"y"})
      .integer("num_heads", 2)
      .integer("unidirectional", 1);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("nn.matmul", "nn.bias_add", "split", "reshape", "transpose",
                                   "reshape", "transpose", "reshape", "transpose", "nn.attention",
                                   "transpose", "reshape"));
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const CallNode* attention = find_call(*model, "nn.attention");
  EXPECT_EQ(attention->args.size(), 3u);
  EXPECT_TRUE(attention->attrs.flag("causal"));
}

TEST(Microsoft, ConstantMaskIsFolded) {
  ModelBuilder m;
  m.input("q", {"1", "2", "4"}).constant("mask", Tensor::from<int32_t>({1, 2}, {1, 0}));
  microsoft(m, "MultiHeadAttention", {"q", "q", "q", "", "mask"}, {"y"}).integer("num_heads", 1);
  m.output("y");
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const CallNode* attention = find_call(*model, "nn.attention");
  ASSERT_EQ(attention->args.size(), 4u);
  const auto* mask = as<ConstantNode>(attention->args[3]);
  ASSERT_NE(mask, nullptr);
  expect_values(mask->value, {1, 1, 1, 2}, {0, -10000});
}

TEST(Microsoft, CachesOfKeysAndValuesAreRefused) {
  ModelBuilder m;
  m.input("q", {"1", "2", "4"}).input("p", {"1", "1", "3", "4"});
  microsoft(m, "MultiHeadAttention", {"q", "q", "q", "", "", "", "p", "p"}, {"y"})
      .integer("num_heads", 1)
      .name("mha");
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported,
               "node 'mha' (com.microsoft::MultiHeadAttention): input 6: a cache of keys and "
               "values (past_key, past_value)");
}

// A model that starts from nothing has a cache of length 0.
TEST(Microsoft, AnEmptyCacheIsNone) {
  ModelBuilder m;
  m.input("q", {"1", "2", "4"}).input("p", {"1", "1", "0", "4"});
  microsoft(m, "MultiHeadAttention", {"q", "q", "q", "", "", "", "p", "p"}, {"y"})
      .integer("num_heads", 1);
  m.output("y");
  EXPECT_TRUE(m.import().ok()) << m.import().status().to_string();
}

TEST(Microsoft, NoStandardOperatorsNeeded) {
  ModelBuilder m;
  m.input("x", {"2"});
  microsoft(m, "Gelu", {"x"}, {"y"});
  m.output("y");
  m.proto().clear_opset_import();
  auto* entry = m.proto().add_opset_import();
  entry->set_domain("com.microsoft");
  entry->set_version(1);
  EXPECT_TRUE(m.import().ok()) << m.import().status().to_string();
}

// ONNX Runtime's default, whatever operator set the attribute names.
TEST(Microsoft, QuantisedSoftmaxIsOverTheLastAxisByDefault) {
  for (const int64_t opset : {12, 13}) {
    ModelBuilder m(opset);
    m.input("x", {"1", "2", "2"}, onnx::TensorProto::UINT8);
    m.constant("s", floats({}, {0.1f})).constant("t", floats({}, {0.01f}));
    m.constant("z", Tensor::from<uint8_t>({}, {0}));
    m.node("QLinearSoftmax", {"x", "s", "z", "t", "z"}, {"y"})
        .domain("com.microsoft")
        .integer("opset", opset);
    m.output("y");
    const Tensor y = m.run({Tensor::from<uint8_t>({1, 2, 2}, {7, 7, 0, 0})})[0];
    expect_values(y, {1, 2, 2}, {50, 50, 50, 50});
  }
}

TEST(Microsoft, ReasonsForWhatIsLeftOut) {
  ModelBuilder m;
  m.input("x", {"2"});
  microsoft(m, "QLinearReduceMean", {"x"}, {"a"});
  microsoft(m, "GreedySearch", {"x"}, {"b"});
  microsoft(m, "Relu", {"x"}, {"c"});  // standard only
  m.output("a").output("b").output("c");
  std::vector<UnsupportedNode> rows;
  expect_error(m.import({}, &rows), ErrorCode::kUnsupported, "3 nodes are unsupported");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].reason, "quantised types");
  EXPECT_EQ(rows[1].reason, "control flow");
  EXPECT_EQ(rows[2].reason, "unknown operator");
}

}  // namespace
}  // namespace collage
