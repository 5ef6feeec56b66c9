// Quantised models: which calls their nodes become, and what is refused. Values stand against the
// ONNX test suite and ONNX Runtime in tests/conformance.
#include "frontend/onnx/model_builder.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;

Tensor bytes(Shape shape, int8_t first) {
  Tensor tensor = Tensor::empty(DType::kInt8, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<int8_t>()[i] = static_cast<int8_t>(first + i);
  return tensor;
}
Tensor byte(uint8_t value) { return Tensor::from<uint8_t>({}, {value}); }

// A constant of 4 bits, two elements a byte.
void add_nibbles(ModelBuilder& m, const std::string& name, const std::vector<int64_t>& dims,
                 const std::string& raw, bool is_signed) {
  TensorProto* tensor = m.graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(is_signed ? TensorProto::INT4 : TensorProto::UINT4);
  for (int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(raw);
}

TEST(Quantised, WeightsStayIntegersWhileImporting) {
  ModelBuilder m;
  m.input("x", {"2", "3"});
  m.constant("s", floats({}, {0.5f})).constant("z", byte(3));
  m.constant("w", bytes({3, 4}, -5)).constant("ws", floats({4}, {1, 2, 3, 4}));
  m.constant("wz", bytes({4}, 0));
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  m.node("DequantizeLinear", {"w", "ws", "wz"}, {"v"}).integer("axis", 1);
  m.node("MatMul", {"d", "v"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(),
              ElementsAre("qnn.quantize", "qnn.dequantize", "qnn.dequantize", "nn.matmul"));
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const CallNode* quantize = find_call(*model, "qnn.quantize");
  EXPECT_EQ(quantize->attrs.string("out_dtype"), "uint8");
  EXPECT_EQ(quantize->args[2]->tensor_type(), (TensorType{{}, DType::kInt32}));
}

TEST(Quantised, ScalesAlongAnAxisAreOfTheNodesAxis) {
  ModelBuilder m;
  m.input("x", {"2", "3"}, TensorProto::INT8);
  m.constant("s", floats({2}, {1, 10}));
  m.node("DequantizeLinear", {"x", "s"}, {"y"}).integer("axis", 0);
  m.output("y");
  expect_values(m.run({bytes({2, 3}, -2)})[0], {2, 3}, {-2, -1, 0, 10, 20, 30});
}

TEST(Quantised, AScaleInAListOfOneIsOfTheWholeTensor) {
  ModelBuilder m(10);
  m.input("x", {"3"});
  m.constant("s", floats({1}, {0.5f}));
  m.node("QuantizeLinear", {"x", "s"}, {"y"});
  m.output("y");
  Tensor y = m.run({floats({3}, {0.5f, -1, 200})})[0];
  EXPECT_EQ(y.dtype(), DType::kUInt8);
  expect_values(y, {3}, {1, 0, 255});
}

TEST(Quantised, BlocksOfConstantsBecomeRealNumbers) {
  ModelBuilder m(21);
  m.input("x", {"2"});
  add_nibbles(m, "w", {2, 5}, std::string("\x10\x32\x54\x76\x98", 5), false);
  m.constant("s", floats({2, 2}, {1, 10, 100, 1000}));
  m.node("DequantizeLinear", {"w", "s"}, {"v"}).integer("axis", 1).integer("block_size", 3);
  m.node("MatMul", {"x", "v"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("expand_dims", "nn.matmul", "reshape"));
  // Rows 0 1 2 | 3 4 and 5 6 7 | 8 9, each block by its scale.
  expect_values(m.run({floats({2}, {1, 1})})[0], {5}, {500, 601, 702, 8030, 9040});
}

TEST(Quantised, BlocksOfComputedTensorsAreComputedElementByElement) {
  ModelBuilder m(21);
  m.input("x", {"1", "4"}, TensorProto::INT8);
  m.constant("s", floats({1, 2}, {1, 10}));
  m.node("DequantizeLinear", {"x", "s"}, {"d"}).integer("block_size", 2);
  m.constant("z", Tensor::from<int8_t>({1, 2}, {0, 5}));
  m.node("QuantizeLinear", {"d", "s", "z"}, {"y"}).integer("block_size", 2);
  m.output("y");
  expect_values(m.run({bytes({1, 4}, 100)})[0], {1, 4}, {100, 101, 107, 108});
}

TEST(Quantised, OneBlockOfAVectorIsTheWholeTensor) {
  ModelBuilder m(21);
  m.input("x", {"4"}, TensorProto::INT8);
  m.constant("w", bytes({4}, -2)).constant("s", floats({1}, {0.5f}));
  for (const char* data : {"x", "w"}) {
    const std::string result = std::string("real_") + data;
    m.node("DequantizeLinear", {data, "s"}, {result}).integer("axis", 0).integer("block_size", 4);
    m.output(result);
  }
  const std::vector<Tensor> results = m.run({bytes({4}, 1)});
  expect_values(results[0], {4}, {0.5, 1, 1.5, 2});
  expect_values(results[1], {4}, {-1, -0.5, 0, 0.5});
}

TEST(Quantised, ElementsOfFourBitsAreUnpackedWithTheirSign) {
  ModelBuilder m(21);
  m.input("x", {"3"});
  add_nibbles(m, "w", {3}, std::string("\x87\x0f", 2), true);  // 7, -8, -1
  m.constant("s", floats({}, {2}));
  m.node("DequantizeLinear", {"w", "s"}, {"v"});
  m.node("Add", {"x", "v"}, {"y"});
  m.output("y");
  expect_values(m.run({floats({3}, {0, 0, 0})})[0], {3}, {14, -16, -2});
}

TEST(Quantised, FourBitsAreRoundedToAndKeptInBytes) {
  ModelBuilder m(21);
  m.input("x", {"5"});
  m.constant("s", floats({}, {2}));
  add_nibbles(m, "z", {}, std::string("\x01", 1), true);
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  m.output("q", TensorProto::INT4);
  const Tensor q = m.run({floats({5}, {3, -3, 100, -100, 5})})[0];
  EXPECT_EQ(q.dtype(), DType::kInt8);
  expect_values(q, {5}, {3, -1, 7, -8, 3});
}

// Of a zero point it stays known through what only moves it.
TEST(Quantised, FourBitsAreRoundedToBehindWhatMovesTheZeroPoint) {
  const auto check = [](const std::string& op, const std::vector<std::string>& more) {
    SCOPED_TRACE(op);
    ModelBuilder m(21);
    m.input("x", {"2"});
    m.constant("s", floats({}, {2}));
    m.constant("none", Tensor::from<int64_t>({0}, {})).constant("axis", int64s({0}));
    add_nibbles(m, "z", {1}, std::string("\x01", 1), true);
    std::vector<std::string> inputs = {"z"};
    inputs.insert(inputs.end(), more.begin(), more.end());
    m.node(op, inputs, {"moved"});
    m.node("Identity", {"moved"}, {"again"});
    m.node("QuantizeLinear", {"x", "s", "again"}, {"q"});
    m.output("q", TensorProto::INT4);
    expect_values(m.run({floats({2}, {100, -100})})[0], {2}, {7, -8});
  };
  check("Identity", {});
  check("Reshape", {"none"});
  check("Squeeze", {"axis"});
}

TEST(Quantised, PackedElementsOfTheWrongNumberAreRefused) {
  ModelBuilder m(21);
  m.input("x", {"3"});
  add_nibbles(m, "w", {3}, std::string("\x87\x0f\x00", 3), true);
  m.constant("s", floats({}, {2}));
  m.node("DequantizeLinear", {"w", "s"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "raw_data has 3 bytes, shape (3) of INT4 needs 2");
}

TEST(Quantised, FloatsOfEightBitsAreRoundedToAndKeptInFloat32) {
  ModelBuilder m(21);
  m.input("x", {"4"});
  m.constant("s", floats({}, {2}));
  m.node("QuantizeLinear", {"x", "s"}, {"q"}).integer("output_dtype", TensorProto::FLOAT8E5M2);
  m.node("DequantizeLinear", {"q", "s"}, {"y"});
  m.output("q", TensorProto::FLOAT8E5M2).output("y");
  const std::vector<Tensor> made = m.run({floats({4}, {2.2f, -7, 1e9f, 0})});
  expect_values(made[0], {4}, {1, -3.5, 57344, 0});
  expect_values(made[1], {4}, {2, -7, 114688, 0});
}

TEST(Quantised, ConvolutionsOfIntegersAreRealOnesBetweenConversions) {
  ModelBuilder m;
  m.input("x", {"1", "1", "3", "3"}, TensorProto::UINT8);
  m.constant("s", floats({}, {0.5f})).constant("z", byte(2));
  m.constant("w", bytes({2, 1, 2, 2}, -3)).constant("ws", floats({2}, {1, 0.5f}));
  m.constant("wz", bytes({2}, 0)).constant("ys", floats({}, {2})).constant("yz", byte(100));
  m.constant("b", Tensor::from<int32_t>({2}, {4, -4}));
  m.node("QLinearConv", {"x", "s", "z", "w", "ws", "wz", "ys", "yz", "b"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("qnn.dequantize", "qnn.dequantize", "nn.conv2d",
                                   "qnn.dequantize", "nn.bias_add", "qnn.quantize"));
}

TEST(Quantised, ProductsOfIntegersAreOfInt32) {
  ModelBuilder m;
  m.input("x", {"2", "2"}, TensorProto::UINT8);
  m.constant("w", bytes({2, 2}, 1)).constant("z", byte(1));
  m.node("MatMulInteger", {"x", "w", "z"}, {"y"});
  m.output("y", TensorProto::INT32);
  Tensor x = Tensor::from<uint8_t>({2, 2}, {1, 2, 0, 255});
  expect_values(m.run({x})[0], {2, 2}, {3, 4, 761, 1014});
}

// A node on integers of uint8, 2 by 3, where the scale named `vector` has three elements.
void expect_one_scale(const std::string& op, const std::string& domain, const std::string& vector,
                      std::vector<std::string> inputs, ErrorCode code, const std::string& part) {
  SCOPED_TRACE(op + " " + vector);
  ModelBuilder m;
  m.input("a", {"1", "3", "3"}, TensorProto::UINT8).input("b", {"3", "3"}, TensorProto::UINT8);
  for (const char* scale : {"as", "bs", "ys"})
    m.constant(scale, scale == vector ? floats({3}, {1, 2, 3}) : floats({}, {1}));
  for (const char* zero : {"az", "bz", "yz"})
    m.constant(zero, zero[0] == vector[0] ? Tensor::zeros(DType::kUInt8, {3}) : byte(0));
  m.constant("w", Tensor::zeros(DType::kUInt8, {3, 3, 1}));
  NodeBuilder node = m.node(op, inputs, {"y"});
  node.domain(domain);
  if (op == "QLinearSoftmax") node.integer("opset", 17);
  if (op == "QLinearConcat") node.integer("axis", 1);
  m.output("y");
  if (code == ErrorCode::kOk) {
    EXPECT_TRUE(m.import().ok()) << m.import().status().to_string();
  } else {
    expect_error(m.import(), code, part);
  }
}

TEST(Quantised, ActivationsHaveOneScale) {
  const auto bad = [](const std::string& op, const std::string& domain, const std::string& vector,
                      const std::vector<std::string>& inputs) {
    expect_one_scale(op, domain, vector, inputs, ErrorCode::kBadModel, "has shape (3), not one");
  };
  const auto good = [](const std::string& op, const std::string& domain, const std::string& vector,
                       const std::vector<std::string>& inputs) {
    expect_one_scale(op, domain, vector, inputs, ErrorCode::kOk, "");
  };
  const std::vector<std::string> conv = {"a", "as", "az", "w", "bs", "bz", "ys", "yz"},
                                 two = {"a", "as", "az", "b", "bs", "bz", "ys", "yz"},
                                 matrices = {"b", "as", "az", "b", "bs", "bz", "ys", "yz"},
                                 one = {"a", "as", "az", "ys", "yz"};
  for (const char* vector : {"as", "ys"}) {
    bad("QLinearConv", "", vector, conv);
    bad("QLinearAdd", "com.microsoft", vector, two);
    bad("QLinearSigmoid", "com.microsoft", vector, one);
    bad("QLinearSoftmax", "com.microsoft", vector, one);
    bad("QLinearGlobalAveragePool", "com.microsoft", vector, one);
    bad("QLinearConcat", "com.microsoft", vector, {"ys", "yz", "a", "as", "az"});
    bad("QGemm", "com.microsoft", vector, {"b", "as", "az", "b", "bs", "bz", "", "ys", "yz"});
  }
  bad("QLinearMul", "com.microsoft", "bs", two);
  bad("MatMulIntegerToFloat", "com.microsoft", "as", {"b", "b", "as", "bs", "az", "bz"});
  // Weights have one for each channel of the result, rows of the left operand too.
  good("QLinearConv", "", "bs", conv);
  good("QGemm", "com.microsoft", "bs", {"b", "as", "az", "b", "bs", "bz", "", "ys", "yz"});
  good("MatMulIntegerToFloat", "com.microsoft", "bs", {"b", "b", "as", "bs", "az", "bz"});
  good("QLinearMatMul", "", "as", matrices);
  good("QLinearMatMul", "", "bs", matrices);
  expect_one_scale("QLinearMatMul", "", "ys", matrices, ErrorCode::kUnsupported,
                   "a result with scales of shape (3)");
}

TEST(Quantised, NanBecomesTheZeroPointInBlocksToo) {
  ModelBuilder m(21);
  m.input("x", {"1", "4"});
  m.constant("s", floats({1, 2}, {1, 10})).constant("z", Tensor::from<int8_t>({1, 2}, {3, 5}));
  m.constant("t", floats({}, {1})).constant("u", Tensor::from<int8_t>({}, {3}));
  m.node("QuantizeLinear", {"x", "s", "z"}, {"blocks"}).integer("block_size", 2);
  m.node("QuantizeLinear", {"x", "t", "u"}, {"whole"});
  m.output("blocks").output("whole");
  const std::vector<Tensor> y = m.run({floats({1, 4}, {NAN, 1, INFINITY, -NAN})});
  expect_values(y[0], {1, 4}, {3, 4, 127, 5});
  expect_values(y[1], {1, 4}, {3, 4, 127, 3});
}

TEST(Quantised, MistakesAreNamed) {
  const auto error_of = [](const std::vector<std::string>& inputs, int64_t block_size,
                           const std::string& part) {
    ModelBuilder m(21);
    m.input("x", {"2", "4"}, TensorProto::INT8).input("i", {}, TensorProto::INT32);
    m.constant("one", floats({}, {1})).constant("two", floats({2}, {1, 1}));
    m.constant("grid", floats({2, 3}, {1, 1, 1, 1, 1, 1})).constant("u", byte(1));
    m.constant("pair", floats({2, 2}, {1, 1, 1, 1}));
    m.constant("bytes", Tensor::zeros(DType::kUInt8, {2, 2}));
    m.node("DequantizeLinear", inputs, {"y"}).integer("block_size", block_size);
    m.output("y");
    expect_error(m.import(), ErrorCode::kBadModel, part);
  };
  error_of({"x", "i"}, 0, "input 1, a scale, is int32");
  error_of({"x", "one", "u"}, 0, "data of int8 and a zero point of uint8");
  error_of({"x", "two"}, 0, "must have shape (4)");
  error_of({"x", "grid"}, 0, "a scale of shape (2, 3) without block_size");
  error_of({"x", "grid"}, 2, "a scale of shape (2, 3), not (2, 2), for blocks of 2");
  error_of({"x", "grid"}, -1, "block_size -1");
  error_of({"x", "pair", "bytes"}, 2, "data of int8 and a zero point of uint8");
}

}  // namespace
}  // namespace collage
