// Which control flow becomes a part of the graph, as what.
#include <algorithm>

#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int32_t kInt64Type = onnx::TensorProto::INT64;
constexpr int32_t kBoolType = onnx::TensorProto::BOOL;

// y = x + 2 · trips, one step at a time, stacked; `grows`: by another element each step.
ModelBuilder& stepping(ModelBuilder& m, int64_t trips, bool grows, bool constant = false) {
  ModelBuilder body;
  body.input("i", {}, kInt64Type).input("go", {}, kBoolType).input("v", {grows ? "n" : "2"});
  body.node("Add", {"v", "one"}, {"more"});
  if (grows)
    body.node("Concat", {"more", "tail"}, {"next"}).integer("axis", 0);
  else
    body.node("Add", {"more", "one"}, {"next"});
  body.output("go").output("next").output("one");
  body.constant("one", Tensor::scalar<float>(1)).constant("tail", floats({1}, {7}));
  m.constant("trips", Tensor::scalar<int64_t>(trips));
  if (constant)
    m.constant("x", floats({2}, {0, 1}));
  else
    m.input("x", {"2"});
  m.node("Loop", {"trips", "", "x"}, {"y", "ones"}).graph("body", body.graph());
  return m.output("y").output("ones");
}

TEST(ControlFlow, LoopsOfFewNodesAreUnrolled) {
  ModelBuilder m;
  EXPECT_THAT(stepping(m, 5, false).ops(), Not(Contains("control.loop")));
  EXPECT_THAT(values_of(m.run({floats({2}, {0, 1})})[0]), ElementsAre(10, 11));
}

TEST(ControlFlow, OthersAreLoops) {
  ModelBuilder m;
  EXPECT_THAT(stepping(m, 500, false).ops(), ElementsAre("control.loop"));
  const std::vector<Tensor> results = m.run({floats({2}, {0, 1})});
  EXPECT_THAT(values_of(results[0]), ElementsAre(1000, 1001));
  EXPECT_EQ(results[1].shape(), Shape{500});
}

TEST(ControlFlow, IterationsOfConstantsAreComputed) {
  ModelBuilder m;
  EXPECT_THAT(stepping(m, 100, false, true).ops(), IsEmpty());
  EXPECT_THAT(values_of(m.run({})[0]), ElementsAre(200, 201));
}

TEST(ControlFlow, IterationsThatDifferAreUnrolledWhereTheyAreFew) {
  ModelBuilder few, many;
  EXPECT_EQ(stepping(few, 20, true).run({floats({2}, {0, 1})})[0].shape(), Shape{22});
  EXPECT_THAT(stepping(many, 300, true).import().status().to_string(),
              HasSubstr("control flow whose iterations differ in their types"));
}

// A sum of rows whose number of iterations nobody knows has no number of rows of its own.
TEST(ControlFlow, StacksOfUnknownHeightAreLeft) {
  ModelBuilder m, body;
  body.input("i", {}, kInt64Type).input("go", {}, kBoolType).input("v", {});
  body.node("Add", {"v", "v"}, {"next"});
  body.node("Less", {"next", "limit"}, {"again"});
  body.output("again").output("next").output("next");
  m.input("x", {}).input("limit", {}).input("trips", {}, kInt64Type);
  m.node("Loop", {"trips", "", "x"}, {"y", "all"}).graph("body", body.graph());
  m.output("y");
  // What nobody reads is not stacked.
  EXPECT_THAT(m.import().status().to_string(), HasSubstr("control flow"));
  m.graph().mutable_node(0)->set_output(1, "");
  EXPECT_THAT(m.ops(), ElementsAre("control.loop"));
  EXPECT_THAT(values_of(m.run({Tensor::scalar<float>(3), Tensor::scalar<float>(20),
                               Tensor::scalar<int64_t>(9)})[0]),
              ElementsAre(24));
}

// A branch is an expression of the graph where both give the same types; one that is ill-typed for
// the shapes at hand may be one that never runs.
TEST(ControlFlow, ConditionsNeedBranchesOfOneType) {
  for (const auto& [axes, is_one] : {std::pair{0, true}, {2, false}}) {
    ModelBuilder keep, drop, m;
    keep.node("Neg", {"x"}, {"r"});
    keep.output("r");
    drop.constant("axes", Tensor::from<int64_t>({1}, {axes}));
    drop.node("Unsqueeze", {"x", "axes"}, {"wide"});
    drop.node("Squeeze", {"wide", "axes"}, {"r"});
    drop.output("r");
    m.input("c", {"1"}, kBoolType).input("x", {"3"});
    m.node("If", {"c"}, {"y"})
        .graph("then_branch", keep.graph())
        .graph("else_branch", drop.graph());
    m.output("y");
    if (is_one) {
      EXPECT_THAT(m.ops(), Contains("control.if"));
      Tensor condition = Tensor::zeros(DType::kBool, {1});
      EXPECT_THAT(values_of(m.run({condition, floats({3}, {1, 2, 3})})[0]), ElementsAre(1, 2, 3));
    } else {
      EXPECT_THAT(m.import().status().to_string(),
                  HasSubstr("control flow on a computed condition"));
    }
  }
}

}  // namespace
}  // namespace collage
