// Models that are no models: each gives the expected code and a message that names the place.
#include <sys/stat.h>

#include <fstream>
#include <random>

#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using onnx::TensorProto;

ModelBuilder& relu(ModelBuilder& m) {
  m.input("x", {"2"});
  m.node("Relu", {"x"}, {"y"}).name("r");
  m.output("y");
  return m;
}

void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

TEST(Malformed, FileThatIsMissing) {
  expect_error(import_onnx("/nonexistent/model.onnx"), ErrorCode::kBadModel,
               "/nonexistent/model.onnx: cannot open: No such file");
}

TEST(Malformed, Folder) {
  ModelBuilder m;
  expect_error(import_onnx(m.folder()), ErrorCode::kBadModel, "is a folder");
}

TEST(Malformed, FifoDoesNotHang) {
  ModelBuilder m;
  ASSERT_EQ(::mkfifo(m.file().c_str(), 0600), 0);
  expect_error(import_onnx(m.file()), ErrorCode::kBadModel, "not a regular file");
}

TEST(Malformed, EmptyFile) {
  ModelBuilder m;
  write_bytes(m.file(), "");
  expect_error(import_onnx(m.file()), ErrorCode::kBadModel, "is empty");
}

TEST(Malformed, Garbage) {
  ModelBuilder m;
  write_bytes(m.file(), std::string(1000, '\xff'));
  expect_error(import_onnx(m.file()), ErrorCode::kBadModel, "is not an ONNX model");
}

TEST(Malformed, TextFile) {
  ModelBuilder m;
  write_bytes(m.file(), "hello, this is text\n");
  expect_error(import_onnx(m.file()), ErrorCode::kBadModel, "not an ONNX model");
}

TEST(Malformed, TruncatedAnywhereIsAnErrorAndNoCrash) {
  ModelBuilder m;
  m.input("x", {"1", "4"});
  m.constant("w", ramp({4, 4}));
  m.node("MatMul", {"x", "w"}, {"y"});
  m.output("y", TensorProto::FLOAT);
  const std::string whole = m.proto().SerializeAsString();
  for (size_t length = 1; length + 1 < whole.size(); ++length) {
    write_bytes(m.file(), whole.substr(0, length));
    Result<ImportedModel> model = import_onnx(m.file());
    // A cut between fields leaves a smaller message; the operator set comes last here or is
    // missing.
    if (model.ok()) continue;
    EXPECT_NE(model.status().code(), ErrorCode::kInternal) << length;
  }
}

TEST(Malformed, FlippedBytesGiveAModelOrAnError) {
  ModelBuilder m;
  m.input("x", {"1", "3", "4", "4"});
  m.constant("w", ramp({2, 3, 3, 3}));
  m.constant("shape", int64s({0, -1}));
  m.node("Conv", {"x", "w"}, {"c"}).ints("pads", {1, 1, 1, 1});
  m.node("Reshape", {"c", "shape"}, {"y"});
  m.output("y");
  const std::string whole = m.proto().SerializeAsString();
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    write_bytes(m.file(), bytes);
    Result<ImportedModel> model = import_onnx(m.file());
    if (model.ok()) continue;
    EXPECT_NE(model.status().code(), ErrorCode::kInternal) << model.status().to_string();
  }
}

TEST(Malformed, NoGraph) {
  ModelBuilder m;
  m.proto().clear_graph();
  expect_error(m.import(), ErrorCode::kBadModel, "it has no graph");
}

TEST(Malformed, NoOutputs) {
  ModelBuilder m;
  m.input("x", {"2"});
  expect_error(m.import(), ErrorCode::kBadModel, "no outputs");
}

TEST(Malformed, CycleIsNamed) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Add", {"x", "c"}, {"a"}).name("first");
  m.node("Relu", {"a"}, {"b"}).name("second");
  m.node("Relu", {"b"}, {"c"}).name("third");
  m.output("c");
  expect_error(m.import(), ErrorCode::kBadModel, "the graph has a cycle");
  expect_error(m.import(), ErrorCode::kBadModel, "node 'second' (Relu) -> ");
}

TEST(Malformed, NodeThatFeedsItself) {
  ModelBuilder m;
  m.node("Relu", {"a"}, {"a"}).name("self");
  m.output("a");
  expect_error(m.import(), ErrorCode::kBadModel, "node 'self' (Relu) -> node 'self' (Relu)");
}

TEST(Malformed, NodesInAnyOrderAreFine) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Neg", {"a"}, {"y"});
  m.node("Relu", {"x"}, {"a"});
  m.output("y");
  expect_values(m.run({floats({2}, {3, -1})})[0], {2}, {-3, 0});
}

TEST(Malformed, DeepChainIsImportedWithoutRecursion) {
  ModelBuilder m;
  m.input("x", {"2"});
  std::string last = "x";
  for (int i = 0; i < 50000; ++i) {
    std::string next = "v" + std::to_string(i);
    m.node("Relu", {last}, {next});
    last = next;
  }
  m.output(last);
  Result<ImportedModel> model = m.import();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ(model->node_count, 50000u);
}

TEST(Malformed, UndefinedInput) {
  ModelBuilder m;
  m.node("Relu", {"nowhere"}, {"y"}).name("r");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel,
               "node 'r' (Relu): input 'nowhere' is no output of a node, input or initializer");
}

TEST(Malformed, UndefinedOutput) {
  ModelBuilder m;
  relu(m).output("z");
  expect_error(m.import(), ErrorCode::kBadModel, "output 'z' is no output of a node");
}

TEST(Malformed, ValueDefinedTwice) {
  ModelBuilder m;
  relu(m).node("Neg", {"x"}, {"y"}).name("n");
  expect_error(m.import(), ErrorCode::kBadModel,
               "node 'n' (Neg): output 'y' is already an output of node 'r' (Relu)");
}

TEST(Malformed, OutputThatIsAlsoAnInput) {
  ModelBuilder m;
  relu(m).node("Neg", {"y"}, {"x"});
  expect_error(m.import(), ErrorCode::kBadModel, "is also an input or initializer");
}

TEST(Malformed, InputAndInitializerDefinedTwice) {
  ModelBuilder a;
  relu(a).input("x", {"2"});
  expect_error(a.import(), ErrorCode::kBadModel, "input 'x' is defined twice");
  ModelBuilder b;
  relu(b).constant("w", ramp({1})).constant("w", ramp({1}));
  expect_error(b.import(), ErrorCode::kBadModel, "initializer 'w' is defined twice");
}

TEST(Malformed, RawDataOfTheWrongLength) {
  ModelBuilder m;
  relu(m).constant("w", ramp({4}));
  m.graph().mutable_initializer(0)->set_raw_data("123");
  expect_error(m.import(), ErrorCode::kBadModel,
               "initializer 'w': raw_data has 3 bytes, shape (4) of float32 needs 16");
}

TEST(Malformed, TypedDataOfTheWrongLength) {
  ModelBuilder m;
  relu(m).constant("w", ramp({4}));
  m.graph().mutable_initializer(0)->clear_raw_data();
  m.graph().mutable_initializer(0)->add_float_data(1);
  expect_error(m.import(), ErrorCode::kBadModel, "initializer 'w': 1 values, shape (4) needs 4");
}

TEST(Malformed, NegativeAndHugeDimensions) {
  for (int64_t extent : {int64_t{-1}, int64_t{1} << 62, INT64_MAX}) {
    ModelBuilder m;
    relu(m).constant("w", ramp({2}));
    TensorProto* w = m.graph().mutable_initializer(0);
    w->clear_dims();
    w->add_dims(extent);
    w->add_dims(1 << 20);
    expect_error(m.import(), ErrorCode::kBadModel, "initializer 'w'");
  }
}

TEST(Malformed, RankBeyondTheLimit) {
  ModelBuilder m;
  relu(m).constant("w", Tensor::from<float>(Shape(40, 1), {1}));
  expect_error(m.import(), ErrorCode::kBadModel, "rank 40, the limit is 32");
}

TEST(Malformed, WeightsBeyondTheMemoryLimit) {
  ModelBuilder m;
  relu(m).constant("w", ramp({1000}));
  ImportOptions options;
  options.max_bytes = 1000;
  expect_error(m.import(options), ErrorCode::kBadModel, "the limit is 1000");
}

TEST(Malformed, AttributeOfTheWrongKind) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Elu", {"x"}, {"y"}).name("e").text("alpha", "one");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel,
               "node 'e' (Elu): attribute 'alpha' has type STRING, not FLOAT");
}

TEST(Malformed, AttributeThatIsTooLong) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Relu", {"x"}, {"y"}).text("note", std::string((1 << 20) + 1, 'a'));
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "the limit is 1048576");
}

TEST(Malformed, InputCountIsChecked) {
  ModelBuilder a;
  a.input("x", {"2"});
  a.node("Add", {"x"}, {"y"}).name("add");
  a.output("y");
  expect_error(a.import(), ErrorCode::kBadModel, "node 'add' (Add): input 1 of 2 is missing");
  ModelBuilder b;
  b.input("x", {"2"});
  b.node("Relu", {"x", "x"}, {"y"});
  b.output("y");
  expect_error(b.import(), ErrorCode::kBadModel, "2 inputs, at most 1 are allowed");
}

TEST(Malformed, ShapesThatDoNotFit) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).input("z", {"4", "3"});
  m.node("MatMul", {"x", "z"}, {"y"}).name("mm");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "node 'mm' (MatMul)");
}

TEST(Malformed, DeclaredOutputTypeThatIsAnother) {
  ModelBuilder m;
  m.input("x", {"2"});
  m.node("Relu", {"x"}, {"y"});
  m.output("y", TensorProto::INT64);
  expect_error(m.import(), ErrorCode::kBadModel,
               "output 'y' is declared as INT64, but computed as float32");
}

TEST(Malformed, GraphsNestedTooDeep) {
  onnx::GraphProto graph;
  for (int depth = 0; depth < 40; ++depth) {
    onnx::GraphProto outer;
    onnx::NodeProto* node = outer.add_node();
    node->set_op_type("If");
    onnx::AttributeProto* branch = node->add_attribute();
    branch->set_name("then_branch");
    branch->set_type(onnx::AttributeProto::GRAPH);
    *branch->mutable_g() = graph;
    graph = outer;
  }
  ModelBuilder m;
  relu(m);
  m.node("If", {"x"}, {"z"}).graph("then_branch", graph);
  Result<ImportedModel> model = m.import();  // the protobuf parser has a limit of its own
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), ErrorCode::kBadModel);
}

TEST(Malformed, ComputedShapesAreHeldAgainstTheLimits) {
  struct Case {
    const char* op;
    std::vector<int64_t> shape;
  };
  for (const Case& bad : std::vector<Case>{{"Expand", {1 << 30, 1 << 30, 2}},
                                           {"Expand", {-2, 2}},
                                           {"ConstantOfShape", {1 << 30, 1 << 30}},
                                           {"ConstantOfShape", {-1}},
                                           {"Reshape", {INT64_MAX, INT64_MAX}},
                                           {"Reshape", {-1, -1}},
                                           {"Tile", {INT64_MAX}}}) {
    ModelBuilder m;
    m.input("x", {"2"}).constant("shape", int64s(bad.shape));
    if (std::string(bad.op) == "ConstantOfShape") {
      m.node(bad.op, {"shape"}, {"y"}).name("n");
    } else {
      m.node(bad.op, {"x", "shape"}, {"y"}).name("n");
    }
    m.output("y");
    SCOPED_TRACE(bad.op);
    expect_error(m.import(), ErrorCode::kBadModel, fmt::format("node 'n' ({})", bad.op));
  }
}

TEST(Malformed, RangeWithoutEndOrTooLong) {
  for (float delta : {0.0f, 1e-30f, NAN}) {
    ModelBuilder m;
    m.constant("from", Tensor::scalar<float>(0)).constant("to", Tensor::scalar<float>(1));
    m.constant("by", Tensor::scalar<float>(delta));
    m.node("Range", {"from", "to", "by"}, {"y"}).name("r");
    m.output("y");
    expect_error(m.import(), ErrorCode::kBadModel, "node 'r' (Range): range");
  }
}

TEST(Malformed, WindowsWithZeroStrideOrHugeKernel) {
  struct Case {
    const char* attribute;
    std::vector<int64_t> values;
  };
  for (const Case& bad : std::vector<Case>{{"strides", {0, 1}},
                                           {"strides", {1}},
                                           {"dilations", {1, INT64_MAX}},
                                           {"kernel_shape", {0, 3}},
                                           {"pads", {-1, 0, 0, 0}},
                                           {"pads", {1, 1}}}) {
    ModelBuilder m;
    m.input("x", {"1", "3", "8", "8"});
    auto node = m.node("MaxPool", {"x"}, {"y"}).name("p");
    node.ints(bad.attribute, bad.values);
    if (std::string(bad.attribute) != "kernel_shape") node.ints("kernel_shape", {2, 2});
    m.output("y");
    expect_error(m.import(), ErrorCode::kBadModel,
                 fmt::format("node 'p' (MaxPool): attribute '{}'", bad.attribute));
  }
}

TEST(Malformed, GroupAndAxisOutOfRange) {
  ModelBuilder conv;
  conv.input("x", {"1", "4", "8", "8"}).constant("w", ramp({4, 2, 3, 3}));
  conv.node("Conv", {"x", "w"}, {"y"}).integer("group", 0);
  conv.output("y");
  expect_error(conv.import(), ErrorCode::kBadModel, "group 0 does not divide 4 channels");
  ModelBuilder softmax;
  softmax.input("x", {"2", "3"});
  softmax.node("Softmax", {"x"}, {"y"}).integer("axis", 2);
  softmax.output("y");
  expect_error(softmax.import(), ErrorCode::kBadModel, "axis 2 is out of range for rank 2");
}

TEST(Malformed, GatherOfAConstantOutOfRange) {
  ModelBuilder m;
  m.constant("w", ramp({4})).constant("i", int64s({9}));
  m.node("Gather", {"w", "i"}, {"y"}).name("g");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "node 'g' (Gather)");
}

}  // namespace
}  // namespace collage
