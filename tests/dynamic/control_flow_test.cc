// Conditions, loops and data-dependent shapes: small models, whose stages are interpreted.
#include <collage/dynamic.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kFloat = onnx::TensorProto::FLOAT;
constexpr int32_t kInt64 = onnx::TensorProto::INT64;
constexpr int32_t kBool = onnx::TensorProto::BOOL;

// A graph for an attribute, written as a model.
onnx::GraphProto graph_of(ModelBuilder& m) { return m.graph(); }

Program load(ModelBuilder& m) {
  Result<Program> program = Program::compile(m.write(), DynamicOptions());
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return std::move(*program);
}

std::vector<Tensor> run(Program& program, const std::vector<Tensor>& inputs) {
  Result<std::vector<Tensor>> outputs = program.run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
  return outputs.ok() ? *outputs : std::vector<Tensor>(program.outputs().size());
}

TEST(DynamicGraph, ConditionTakesItsBranch) {
  ModelBuilder twice(17), negative(17), m(17);
  twice.node("Add", {"x", "x"}, {"r"});
  twice.output("r", kFloat);
  negative.node("Neg", {"x"}, {"r"});
  negative.output("r", kFloat);
  m.input("x", {"n"}).constant("zero", Tensor::scalar<float>(0));
  m.node("ReduceSum", {"x"}, {"sum"}).integer("keepdims", 0);
  m.node("Greater", {"sum", "zero"}, {"positive"});
  m.node("If", {"positive"}, {"y"})
      .graph("then_branch", graph_of(twice))
      .graph("else_branch", graph_of(negative));
  m.node("Abs", {"y"}, {"z"});
  m.output("y", kFloat).output("z", kFloat);
  Program program = load(m);
  std::vector<Tensor> outputs = run(program, {floats({2}, {1, 3})});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(2, 6));
  outputs = run(program, {floats({3}, {1, -3, -4})});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(-1, 3, 4));
  EXPECT_THAT(values_of(outputs[1]), ElementsAre(1, 3, 4));
  outputs = run(program, {floats({2}, {5, 6})});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(10, 12));
}

// The graphs of a function's condition that a run decides on, whose names are the caller's too.
TEST(DynamicGraph, BranchesOfFunctionsDoNotMeetTheCallersNames) {
  ModelBuilder more(17), less(17), m(17);
  more.constant("t", Tensor::scalar<float>(100));
  more.node("Add", {"a", "t"}, {"z"});
  more.output("z", kFloat);
  less.node("Neg", {"a"}, {"z"});
  less.output("z", kFloat);
  onnx::FunctionProto* function = m.proto().add_functions();
  function->set_name("added");
  function->set_domain("local");
  function->add_input("a");
  function->add_input("c");
  function->add_output("y");
  function->add_opset_import()->set_version(17);
  onnx::NodeProto* condition = function->add_node();
  condition->set_op_type("If");
  condition->add_input("c");
  condition->add_output("y");
  NodeBuilder(condition).graph("then_branch", graph_of(more)).graph("else_branch", graph_of(less));
  m.input("t", {"n"}).input("c", {}, kBool);
  m.node("added", {"t", "c"}, {"z"}).domain("local");
  m.node("Add", {"z", "t"}, {"sum"});
  m.output("sum", kFloat);
  Program program = load(m);
  EXPECT_THAT(values_of(run(program, {floats({2}, {1, 2}), Tensor::scalar<bool>(true)})[0]),
              ElementsAre(102, 104));
  EXPECT_THAT(values_of(run(program, {floats({2}, {1, 2}), Tensor::scalar<bool>(false)})[0]),
              ElementsAre(0, 0));
}

// Doubles x until it is at least 100; stacks what it was.
ModelBuilder& doubling(ModelBuilder& m, bool trip_count) {
  ModelBuilder body(17);
  body.input("i", {}, kInt64).input("go", {}, kBool).input("v", {"n"});
  body.constant("limit", Tensor::scalar<float>(100));
  body.node("Add", {"v", "v"}, {"doubled"});
  body.node("ReduceMax", {"doubled"}, {"largest"}).integer("keepdims", 0);
  body.node("Less", {"largest", "limit"}, {"again"});
  body.node("Mul", {"v", "scale"}, {"seen"});
  body.output("again", kBool).output("doubled", kFloat).output("seen", kFloat);
  m.input("x", {"n"}).input("scale", {});
  if (trip_count) m.constant("trips", Tensor::scalar<int64_t>(2));
  m.node("Loop", {trip_count ? "trips" : "", "", "x"}, {"y", "all"}).graph("body", body.graph());
  m.output("y", kFloat).output("all", kFloat);
  return m;
}

TEST(DynamicGraph, LoopRunsWhileItsConditionHolds) {
  ModelBuilder m(17);
  Program program = load(doubling(m, false));
  std::vector<Tensor> outputs = run(program, {floats({2}, {20, 1}), Tensor::scalar<float>(10)});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(160, 8));
  EXPECT_EQ(outputs[1].shape(), (Shape{3, 2}));
  EXPECT_THAT(values_of(outputs[1]), ElementsAre(200, 10, 400, 20, 800, 40));
  outputs = run(program, {floats({1}, {60}), Tensor::scalar<float>(1)});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(120));
}

TEST(DynamicGraph, LoopEndsAtItsTripCount) {
  ModelBuilder m(17);
  Program program = load(doubling(m, true));
  const std::vector<Tensor> outputs = run(program, {floats({1}, {1}), Tensor::scalar<float>(1)});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(4));
  // Or before, where its condition says so.
  EXPECT_THAT(values_of(run(program, {floats({1}, {60}), Tensor::scalar<float>(1)})[0]),
              ElementsAre(120));
}

// Each iteration is little work, all of them are not. Values stay the same when that is noticed, in
// the middle of a loop.
TEST(DynamicGraph, ABodyThatRunsOftenIsCompiled) {
  constexpr int64_t kTrips = 1500, kSize = 4096;  // 4 flops an element and trip: more than 2e7
  ModelBuilder body(17), m(17);
  body.input("i", {}, kInt64).input("go", {}, kBool).input("v", {"n"});
  body.node("Add", {"v", "step"}, {"more"});
  body.node("Abs", {"more"}, {"positive"});
  body.node("Neg", {"positive"}, {"negative"});
  body.node("Neg", {"negative"}, {"next"});
  body.node("ReduceMax", {"next"}, {"largest"}).integer("keepdims", 0);
  body.output("go", kBool).output("next", kFloat).output("largest", kFloat).output("step", kFloat);
  m.input("x", {"n"}).input("step", {}).input("trips", {}, kInt64);
  m.node("Loop", {"trips", "", "x"}, {"y", "all", "steps"}).graph("body", body.graph());
  m.output("y", kFloat).output("all", kFloat).output("steps", kFloat);
  DynamicOptions options;
  options.program.targets = {"reference"};
  options.program.worker = std::filesystem::read_symlink("/proc/self/exe");  // is not asked
  Result<Program> program = Program::compile(m.write(), options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const auto compiled = [&] {
    const std::vector<SpecialisationInfo> made = program->specialisations();
    return std::any_of(made.begin(), made.end(), [](const SpecialisationInfo& one) {
      return one.part.find("loop") != std::string::npos && !one.interpreted;
    });
  };
  const Tensor x = floats({kSize}, std::vector<float>(kSize, 1));
  const auto run_trips = [&](int64_t trips) {
    return run(*program, {x, Tensor::scalar<float>(2), Tensor::scalar<int64_t>(trips)});
  };
  EXPECT_THAT(values_of(run_trips(3)[1]), ElementsAre(3, 5, 7));
  EXPECT_FALSE(compiled());
  const std::vector<Tensor> outputs = run_trips(kTrips);
  EXPECT_TRUE(compiled());
  EXPECT_THAT(values_of(outputs[0]), ::testing::Each(1 + 2 * kTrips));
  ASSERT_EQ(outputs[1].shape(), Shape{kTrips});
  for (int64_t i = 0; i < kTrips; ++i) {
    ASSERT_EQ(outputs[1].data<float>()[i], 3 + 2 * i);
    ASSERT_EQ(outputs[2].data<float>()[i], 2);
  }
}

// What passes from iteration to iteration changes its shape.
TEST(DynamicGraph, ALoopsStateMayGrow) {
  ModelBuilder body(17), m(17);
  body.input("i", {}, kInt64).input("go", {}, kBool).input("v", {"n"});
  body.constant("one", Tensor::from<float>({1}, {1}));
  body.node("Concat", {"v", "one"}, {"next"}).integer("axis", 0);
  body.node("ReduceSum", {"next"}, {"sum"}).integer("keepdims", 0);
  body.output("go", kBool).output("next", kFloat).output("sum", kFloat);
  m.input("x", {"n"}).input("trips", {}, kInt64);
  m.node("Loop", {"trips", "", "x"}, {"y", "all"}).graph("body", body.graph());
  m.output("y", kFloat).output("all", kFloat);
  Program program = load(m);
  const std::vector<Tensor> outputs = run(program, {floats({1}, {5}), Tensor::scalar<int64_t>(4)});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(5, 1, 1, 1, 1));
  EXPECT_THAT(values_of(outputs[1]), ElementsAre(6, 7, 8, 9));
}

// A running sum over the rows, backwards.
TEST(DynamicGraph, ScanOverComputedLength) {
  ModelBuilder body(17), m(17);
  body.input("sum", {"2"}).input("row", {"2"});
  body.node("Add", {"sum", "row"}, {"next"});
  body.node("Identity", {"next"}, {"seen"});
  body.node("Identity", {"next"}, {"seen_too"});
  body.output("next", kFloat).output("seen", kFloat).output("seen_too", kFloat);
  m.input("start", {"2"}).input("rows", {"n", "2"});
  m.node("Scan", {"start", "rows"}, {"total", "sums", "turned"})
      .integer("num_scan_inputs", 1)
      .ints("scan_input_directions", {1})
      .ints("scan_output_axes", {1, 0})
      .ints("scan_output_directions", {0, 1})
      .graph("body", body.graph());
  m.output("total", kFloat).output("sums", kFloat).output("turned", kFloat);
  Program program = load(m);
  // Few steps are unrolled, many are not.
  for (int64_t n : {3, 3000}) {
    std::vector<float> rows(static_cast<size_t>(2 * n), 1);
    rows[0] = 5;
    const std::vector<Tensor> outputs = run(program, {floats({2}, {0, 1}), floats({n, 2}, rows)});
    EXPECT_THAT(values_of(outputs[0]), ElementsAre(n + 4, n + 1));
    ASSERT_EQ(outputs[1].shape(), (Shape{2, n}));
    EXPECT_EQ(outputs[1].element_as_double(0), 1);
    EXPECT_EQ(outputs[1].element_as_double(n - 1), n + 4);
    EXPECT_EQ(outputs[1].element_as_double(2 * n - 1), n + 1);
    ASSERT_EQ(outputs[2].shape(), (Shape{n, 2}));
    EXPECT_EQ(outputs[2].element_as_double(0), n + 4);
    EXPECT_EQ(outputs[2].element_as_double(2 * n - 2), 1);
  }
}

TEST(DynamicGraph, ShapesThatDependOnValues) {
  ModelBuilder m(17);
  m.input("x", {"n"}).constant("minus", Tensor::from<int64_t>({1}, {-1}));
  m.node("NonZero", {"x"}, {"where"});
  m.node("Reshape", {"where", "minus"}, {"flat"});
  m.node("Gather", {"x", "flat"}, {"y"});
  m.node("Shape", {"y"}, {"count"});
  m.node("TopK", {"y", "count"}, {"sorted", "order"});
  m.output("sorted", kFloat).output("order", kInt64);
  Program program = load(m);
  std::vector<Tensor> outputs = run(program, {floats({5}, {0, 3, 0, 7, 5})});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(7, 5, 3));
  EXPECT_THAT(values_of(outputs[1]), ElementsAre(1, 2, 0));
  outputs = run(program, {floats({2}, {1, 2})});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(2, 1));
  outputs = run(program, {floats({2}, {0, 0})});
  EXPECT_EQ(outputs[0].shape(), (Shape{0}));
}

// A shape that an input holds, and one that is computed from values.
TEST(DynamicGraph, ShapesGivenAsValues) {
  ModelBuilder m(17);
  m.input("x", {"n"}).input("shape", {"2"}, kInt64);
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.node("ReduceMax", {"shape"}, {"k"}).integer("keepdims", 1);
  m.node("Concat", {"k", "k"}, {"square"}).integer("axis", 0);
  m.node("Expand", {"one", "square"}, {"ones"});
  m.constant("one", Tensor::scalar<float>(1));
  m.output("y", kFloat).output("ones", kFloat);
  Program program = load(m);
  std::vector<Tensor> outputs =
      run(program, {floats({6}, {1, 2, 3, 4, 5, 6}), Tensor::from<int64_t>({2}, {2, 3})});
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(outputs[1].shape(), (Shape{3, 3}));
  outputs = run(program, {floats({4}, {1, 2, 3, 4}), Tensor::from<int64_t>({2}, {4, 1})});
  EXPECT_EQ(outputs[0].shape(), (Shape{4, 1}));
  EXPECT_EQ(outputs[1].shape(), (Shape{4, 4}));
}

// A condition inside a loop, on what the loop computes: Collatz's steps down to 1.
TEST(DynamicGraph, ConditionInsideALoop) {
  ModelBuilder even(17), odd(17), body(17), m(17);
  even.node("Div", {"v", "two"}, {"r"});
  even.output("r", kInt64);
  odd.constant("three", Tensor::scalar<int64_t>(3));
  odd.node("Mul", {"v", "three"}, {"tripled"});
  odd.node("Add", {"tripled", "one"}, {"r"});
  odd.output("r", kInt64);
  body.input("i", {}, kInt64).input("go", {}, kBool).input("v", {}, kInt64);
  body.constant("two", Tensor::scalar<int64_t>(2)).constant("one", Tensor::scalar<int64_t>(1));
  body.constant("zero", Tensor::scalar<int64_t>(0));
  body.node("Mod", {"v", "two"}, {"rest"});
  body.node("Equal", {"rest", "zero"}, {"is_even"});
  body.node("If", {"is_even"}, {"next"})
      .graph("then_branch", graph_of(even))
      .graph("else_branch", graph_of(odd));
  body.node("Greater", {"next", "one"}, {"again"});
  body.output("again", kBool).output("next", kInt64).output("next", kInt64);
  m.input("x", {}, kInt64);
  m.node("Loop", {"", "", "x"}, {"last", "path"}).graph("body", body.graph());
  m.output("last", kInt64).output("path", kInt64);
  Program program = load(m);
  const std::vector<Tensor> outputs = run(program, {Tensor::scalar<int64_t>(6)});
  EXPECT_THAT(values_of(outputs[1]), ElementsAre(3, 10, 5, 16, 8, 4, 2, 1));
}

// Those that are listed are those that are kept: 64 of a stage, and what follows them.
TEST(DynamicGraph, ListsWhatItKeeps) {
  ModelBuilder m(17);
  m.input("x", {"n"});
  m.node("Neg", {"x"}, {"y"});
  m.node("NonZero", {"y"}, {"w"});
  m.node("Neg", {"w"}, {"z"});
  m.output("z", kInt64);
  Program program = load(m);
  for (int64_t n = 1; n <= 70; ++n)
    run(program, {floats({n}, std::vector<float>(static_cast<size_t>(n), 1))});
  const std::vector<SpecialisationInfo> made = program.specialisations();
  EXPECT_EQ(made.size(), 2 * 64u);
  EXPECT_EQ(made.front().shapes, "x (7)");
}

// An operator that the user gives, between operators of ours; it stands before one of ours too.
TEST(DynamicGraph, OperatorsOfTheUser) {
  ModelBuilder m(17);
  m.input("x", {"n"});
  m.node("Neg", {"x"}, {"a"});
  m.node("Scale", {"a", ""}, {"b"}).domain("my.domain").name("s").real("by", 3);
  m.node("Neg", {"b"}, {"y"});
  m.node("NonZero", {"y"}, {"w"});
  m.output("y", kFloat).output("w", kInt64);
  auto* domain = m.proto().add_opset_import();
  domain->set_domain("my.domain");
  domain->set_version(1);
  DynamicOptions options;
  options.operators["my.domain::Scale"] =
      [](const ForeignCall& call) -> Result<std::vector<Tensor>> {
    EXPECT_EQ(call.node, "s");
    Tensor result = call.inputs[0].clone();
    for (int64_t i = 0; i < result.size(); ++i)
      result.data<float>()[i] *= static_cast<float>(std::get<double>(call.attributes.at("by")));
    return std::vector<Tensor>{result};
  };
  options.operators["NonZero"] = [](const ForeignCall&) -> Result<std::vector<Tensor>> {
    return std::vector<Tensor>{Tensor::from<int64_t>({1}, {7})};
  };
  Result<Program> program = Program::compile(m.write(), options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const std::vector<Tensor> outputs = run(*program, {floats({2}, {1, 2})});
  EXPECT_THAT(values_of(outputs[0]), ElementsAre(3, 6));
  EXPECT_THAT(values_of(outputs[1]), ElementsAre(7));
  options.operators["my.domain::Scale"] = [](const ForeignCall&) -> Result<std::vector<Tensor>> {
    return std::vector<Tensor>{};
  };
  program = Program::compile(m.file(), options);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->run({floats({1}, {1})}).status().message(),
            "the operator given for it returned 0 results, not 1");
}

TEST(DynamicGraph, WhatIsNeverSupportedIsRefused) {
  ModelBuilder m(17);
  m.input("x", {"n"});
  m.node("NonZero", {"x"}, {"w"});
  m.node("Frobnicate", {"x"}, {"y"}).name("f");
  m.output("w", kInt64).output("y", kFloat);
  Program program = load(m);
  Result<std::vector<Tensor>> outputs = program.run({floats({1}, {1})});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(outputs.status().message(), "unsupported: node 'f' (Frobnicate): unknown operator");
}

}  // namespace
}  // namespace collage
