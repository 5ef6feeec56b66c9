#include "fuzz/programs/seeds.h"

#include "frontend/onnx/model_builder.h"
#include "ops/random_inputs.h"

namespace collage::fuzz {
namespace {

// Values in a range that keeps activations alive.
Tensor weights(Shape shape, uint64_t seed, double bound = 0.5) {
  return random_tensor({std::move(shape), DType::kFloat32}, seed, {-bound, bound});
}
Tensor positive(Shape shape, uint64_t seed) {
  return random_tensor({std::move(shape), DType::kFloat32}, seed, {0.5, 1.5});
}
Tensor bytes(Shape shape, uint64_t seed) {
  return random_tensor({std::move(shape), DType::kInt8}, seed, {-100, 100});
}
Tensor zero_point(int8_t value) { return Tensor::from<int8_t>({}, {value}); }

std::string serialised(ModelBuilder& m) { return m.proto().SerializeAsString(); }

// A residual block, pooling and a classifier.
std::string residual_network() {
  ModelBuilder m;
  m.input("x", {"1", "3", "8", "8"});
  m.constant("w1", weights({4, 3, 3, 3}, 1)).constant("b1", weights({4}, 2));
  for (const char* name : {"scale", "bias", "mean", "variance"})
    m.constant(name, positive({4}, static_cast<uint64_t>(name[0])));
  m.constant("w2", weights({4, 4, 3, 3}, 3)).constant("w3", weights({4, 1, 3, 3}, 4));
  m.constant("fc", weights({5, 4}, 5)).constant("fb", weights({5}, 6));
  m.node("Conv", {"x", "w1", "b1"}, {"c1"}).ints("pads", {1, 1, 1, 1}).ints("strides", {2, 2});
  m.node("BatchNormalization", {"c1", "scale", "bias", "mean", "variance"}, {"n1"});
  m.node("Relu", {"n1"}, {"r1"});
  m.node("Conv", {"r1", "w2"}, {"c2"}).ints("pads", {1, 1, 1, 1});
  m.node("Add", {"c2", "r1"}, {"a"});
  m.node("Clip", {"a", "", "six"}, {"k"});
  m.constant("six", floats({}, {6}));
  m.node("Conv", {"k", "w3"}, {"d"}).ints("pads", {1, 1, 1, 1}).integer("group", 4);
  m.node("MaxPool", {"d"}, {"p"}).ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
  m.node("GlobalAveragePool", {"p"}, {"g"});
  m.node("Flatten", {"g"}, {"f"});
  m.node("Gemm", {"f", "fc", "fb"}, {"y"}).integer("transB", 1);
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

// Convolution and product between QuantizeLinear and DequantizeLinear.
std::string quantised_network() {
  ModelBuilder m;
  m.input("x", {"1", "2", "6", "6"});
  m.constant("s", floats({}, {0.05f})).constant("z", zero_point(3));
  m.constant("t", floats({}, {0.2f})).constant("u", zero_point(-7));
  m.constant("w", bytes({4, 2, 3, 3}, 1)).constant("ws", positive({4}, 2));
  m.constant("wz", Tensor::zeros(DType::kInt8, {4}));
  m.constant("v", bytes({4, 3}, 3)).constant("vs", floats({}, {0.01f}));
  m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  m.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  m.node("DequantizeLinear", {"w", "ws", "wz"}, {"dw"}).integer("axis", 0);
  m.node("Conv", {"d", "dw"}, {"c"}).ints("pads", {1, 1, 1, 1});
  m.node("Relu", {"c"}, {"r"});
  m.node("QuantizeLinear", {"r", "t", "u"}, {"q2"});
  m.node("DequantizeLinear", {"q2", "t", "u"}, {"d2"});
  m.node("MaxPool", {"d2"}, {"p"}).ints("kernel_shape", {3, 3}).ints("strides", {3, 3});
  m.node("ReduceMean", {"p"}, {"f"}).ints("axes", {2, 3}).integer("keepdims", 0);
  m.node("DequantizeLinear", {"v", "vs"}, {"dv"});
  m.node("MatMul", {"f", "dv"}, {"y"});
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

// The same by operators on integers.
std::string integer_network() {
  ModelBuilder m;
  m.input("x", {"1", "2", "5", "5"}, onnx::TensorProto::INT8);
  m.constant("s", floats({}, {0.05f})).constant("z", zero_point(3));
  m.constant("w", bytes({4, 2, 2, 2}, 1)).constant("ws", positive({4}, 2));
  m.constant("wz", Tensor::zeros(DType::kInt8, {4}));
  m.constant("b", Tensor::from<int32_t>({4}, {1, -20, 300, 0}));
  m.constant("v", bytes({16, 3}, 3)).constant("vz", zero_point(0));
  m.node("QLinearConv", {"x", "s", "z", "w", "ws", "wz", "s", "z", "b"}, {"c"})
      .ints("strides", {2, 2});
  m.constant("rows", int64s({1, -1}));
  m.node("Reshape", {"c", "rows"}, {"f"});
  m.node("MatMulInteger", {"f", "v", "z", "vz"}, {"i"});
  m.node("Cast", {"i"}, {"r"}).integer("to", onnx::TensorProto::FLOAT);
  m.node("Mul", {"r", "s"}, {"y"});
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

std::string recurrent_network(const std::string& op, int64_t gates) {
  ModelBuilder m;
  m.input("x", {"4", "2", "3"});
  m.constant("w", weights({1, gates * 5, 3}, 1)).constant("r", weights({1, gates * 5, 5}, 2));
  m.constant("b", weights({1, 2 * gates * 5}, 3));
  m.node(op, {"x", "w", "r", "b"}, {"", "h"}).integer("hidden_size", 5);
  m.constant("axis", int64s({0}));
  m.node("Squeeze", {"h", "axis"}, {"last"});
  m.constant("v", weights({5, 2}, 4));
  m.node("MatMul", {"last", "v"}, {"y"});
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

// One layer of a transformer, of two heads.
std::string attention_network() {
  ModelBuilder m;
  m.input("ids", {"1", "4"}, onnx::TensorProto::INT64);
  m.constant("table", weights({10, 8}, 1)).constant("wqkv", weights({8, 24}, 2));
  m.constant("heads", int64s({1, 4, 2, 4})).constant("whole", int64s({1, 4, 8}));
  m.constant("g", positive({8}, 3)).constant("b", weights({8}, 4));
  m.constant("root", floats({}, {2})).constant("thirds", int64s({8, 8, 8}));
  m.node("Gather", {"table", "ids"}, {"e"});
  m.node("LayerNormalization", {"e", "g", "b"}, {"n"});
  m.node("MatMul", {"n", "wqkv"}, {"qkv"});
  m.node("Split", {"qkv", "thirds"}, {"q", "k", "v"}).integer("axis", 2);
  for (const char* part : {"q", "k", "v"}) {
    const std::string name = part;
    m.node("Reshape", {name, "heads"}, {name + "r"});
    m.node("Transpose", {name + "r"}, {name + "t"})
        .ints("perm",
              name == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
  }
  m.node("MatMul", {"qt", "kt"}, {"scores"});
  m.node("Div", {"scores", "root"}, {"scaled"});
  m.node("Softmax", {"scaled"}, {"p"}).integer("axis", -1);
  m.node("MatMul", {"p", "vt"}, {"o"});
  m.node("Transpose", {"o"}, {"ot"}).ints("perm", {0, 2, 1, 3});
  m.node("Reshape", {"ot", "whole"}, {"or"});
  m.node("Add", {"or", "e"}, {"a"});
  m.node("Erf", {"a"}, {"y"});
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

// Shapes as data.
std::string shape_network() {
  ModelBuilder m;
  m.input("x", {"2", "6"});
  m.constant("first", int64s({0})).constant("three", int64s({3})).constant("all", int64s({-1}));
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "first"}, {"n"});
  m.node("Concat", {"n", "three", "all"}, {"to"}).integer("axis", 0);
  m.node("Reshape", {"x", "to"}, {"r"});
  m.constant("begin", int64s({1})).constant("end", int64s({INT64_MAX}));
  m.constant("axes", int64s({1})).constant("steps", int64s({1}));
  m.node("Slice", {"r", "begin", "end", "axes", "steps"}, {"c"});
  m.node("ReduceMax", {"c"}, {"top"}).ints("axes", {2});
  m.node("Greater", {"c", "top"}, {"g"});
  m.constant("zero", floats({}, {0}));
  m.node("Where", {"g", "zero", "c"}, {"k"});
  m.constant("pads", int64s({0, 0, 1, 0, 0, 1}));
  m.node("Pad", {"k", "pads"}, {"p"});
  m.node("CumSum", {"p", "axis"}, {"y"});
  m.constant("axis", Tensor::from<int64_t>({}, {2}));
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

onnx::GraphProto branch(const std::string& op) {
  ModelBuilder m;
  m.node(op, {"x"}, {"z"});
  m.output("z", onnx::TensorProto::FLOAT);
  return m.graph();
}

// A branch on a constant.
std::string branching_network() {
  ModelBuilder m;
  m.input("x", {"2", "3"});
  m.constant("c", Tensor::from<bool>({}, {true}));
  m.node("If", {"c"}, {"b"})
      .graph("then_branch", branch("Tanh"))
      .graph("else_branch", branch("Exp"));
  m.node("Neg", {"b"}, {"y"});
  m.output("y", onnx::TensorProto::FLOAT);
  return serialised(m);
}

}  // namespace

std::vector<std::string> small_networks() {
  return {residual_network(),
          quantised_network(),
          integer_network(),
          recurrent_network("LSTM", 4),
          recurrent_network("GRU", 3),
          attention_network(),
          shape_network(),
          branching_network()};
}

}  // namespace collage::fuzz
