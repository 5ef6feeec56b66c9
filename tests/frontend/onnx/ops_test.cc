// Element-wise operators, shapes, indices and reductions: options that the ONNX test suite does not
// try, old operator sets, and values known by hand.
#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// y = op(x, constants…) imported with constants and run on x.
Tensor apply(const std::string& op, const Tensor& x, const std::vector<Tensor>& constants,
             const std::function<void(NodeBuilder&)>& set = {}, int64_t opset = 17) {
  ModelBuilder m(opset);
  std::vector<std::string> dims, names = {"x"};
  for (int64_t extent : x.shape()) dims.push_back(std::to_string(extent));
  m.input("x", dims, x.dtype() == DType::kInt64 ? TensorProto::INT64 : TensorProto::FLOAT);
  for (size_t i = 0; i < constants.size(); ++i) {
    names.push_back("c" + std::to_string(i));
    if (constants[i].defined()) {
      m.constant(names.back(), constants[i]);
    } else {
      names.back() = "";
    }
  }
  NodeBuilder node = m.node(op, names, {"y"});
  if (set) set(node);
  m.output("y");
  return m.run({x})[0];
}

TEST(Elementwise, LegacyBroadcastOfOperatorSet6) {
  Tensor y = apply(
      "Add", Tensor::zeros(DType::kFloat32, {2, 2, 1}), {floats({2}, {1, 2})},
      [](NodeBuilder& n) { n.integer("broadcast", 1).integer("axis", 1); }, 6);
  expect_values(y, {2, 2, 1}, {1, 2, 1, 2});
}

TEST(Elementwise, PowKeepsTheBasesType) {
  Tensor y = apply("Pow", int64s({2, 3, 4}), {floats({1}, {0.5})});
  EXPECT_EQ(y.dtype(), DType::kInt64);
  expect_values(y, {3}, {1, 1, 2});
  expect_values(apply("Pow", floats({2}, {2, 3}), {int64s({2})}), {2}, {4, 9});
}

TEST(Elementwise, ModFollowsItsFlag) {
  const Tensor x = floats({2}, {-5, 5});
  expect_values(apply("Mod", x, {floats({1}, {3})}, [](NodeBuilder& n) { n.integer("fmod", 1); }),
                {2}, {-2, 2});
  expect_values(apply("Mod", int64s({-5, 5}), {int64s({3})}), {2}, {1, 2});
}

TEST(Elementwise, ShiftsOfSignedNumbersIn28) {
  auto left = [](NodeBuilder& n) { n.text("direction", "LEFT"); };
  auto right = [](NodeBuilder& n) { n.text("direction", "RIGHT"); };
  expect_values(apply("BitShift", int64s({3, 3}), {int64s({1, -1})}, left, 28), {2}, {6, 0});
  expect_values(apply("BitShift", int64s({-8, -8}), {int64s({1, -1})}, right, 28), {2}, {-4, -1});
}

TEST(Elementwise, IsInfOfOneSign) {
  const Tensor x = floats({3}, {INFINITY, -INFINITY, 1});
  expect_values(apply("IsInf", x, {}, [](NodeBuilder& n) { n.integer("detect_negative", 0); }), {3},
                {1, 0, 0});
}

TEST(Determinant, WrittenOutToThreeRows) {
  expect_values(apply("Det", floats({3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 4}), {}), {}, {18});
  expect_values(apply("Det", floats({2, 1, 1}, {2, 3}), {}), {2}, {2, 3});
  ModelBuilder m;
  m.input("x", {"4", "4"});
  m.node("Det", {"x"}, {"y"});
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported, "matrices larger than 3 by 3");
}

TEST(Shape, ReshapeCopiesAndInfers) {
  expect_values(apply("Reshape", ramp({2, 3}), {int64s({0, -1, 1})}), {2, 3, 1},
                {0, 1, 2, 3, 4, 5});
  Tensor empty = apply("Reshape", Tensor::zeros(DType::kFloat32, {0, 3}), {int64s({3, 0})},
                       [](NodeBuilder& n) { n.integer("allowzero", 1); });
  EXPECT_EQ(empty.shape(), (Shape{3, 0}));
}

TEST(Shape, SqueezeAndUnsqueezeByAttributeAndInput) {
  auto axes = [](NodeBuilder& n) { n.ints("axes", {0}); };
  EXPECT_EQ(apply("Squeeze", ramp({1, 2, 1}), {}, axes, 11).shape(), (Shape{2, 1}));
  EXPECT_EQ(apply("Squeeze", ramp({1, 2, 1}), {int64s({-1})}).shape(), (Shape{1, 2}));
  EXPECT_EQ(apply("Squeeze", ramp({1, 2, 1}), {}).shape(), (Shape{2}));
  EXPECT_EQ(apply("Unsqueeze", ramp({2}), {}, axes, 11).shape(), (Shape{1, 2}));
  EXPECT_EQ(apply("Unsqueeze", ramp({2}), {int64s({-1, 0})}).shape(), (Shape{1, 2, 1}));
}

TEST(Shape, SliceByAttributes) {
  Tensor y = apply(
      "Slice", ramp({4}), {},
      [](NodeBuilder& n) { n.ints("starts", {-3}).ints("ends", {INT64_MAX}); }, 9);
  expect_values(y, {3}, {1, 2, 3});
}

TEST(Shape, SliceBackwardsToBeforeTheFirst) {
  Tensor y =
      apply("Slice", ramp({4}), {int64s({-1}), int64s({INT64_MIN}), int64s({0}), int64s({-2})});
  expect_values(y, {2}, {3, 1});
  EXPECT_EQ(apply("Slice", ramp({4}), {int64s({3}), int64s({1})}).shape(), (Shape{0}));
}

TEST(Shape, SliceOfEverythingIsNothing) {
  ModelBuilder m;
  m.input("x", {"4"}).constant("a", int64s({0})).constant("b", int64s({INT64_MAX}));
  m.node("Slice", {"x", "a", "b"}, {"y"});
  m.output("y");
  EXPECT_THAT(m.ops(), IsEmpty());
}

TEST(Shape, SplitIntoUnevenPartsIn18) {
  ModelBuilder m(18);
  m.input("x", {"7"});
  m.node("Split", {"x"}, {"a", "b", "c"}).integer("num_outputs", 3);
  m.output("a").output("b").output("c");
  std::vector<Tensor> results = m.run({ramp({7})});
  EXPECT_EQ(results[0].shape(), (Shape{3}));
  expect_values(results[2], {1}, {6});
  ModelBuilder before(13);
  before.input("x", {"7"});
  before.node("Split", {"x"}, {"a", "b", "c"});
  before.output("a");
  expect_error(before.import(), ErrorCode::kBadModel, "7 elements do not split into 3 equal parts");
}

TEST(Shape, SplitSizesThatDoNotAddUp) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{2, 2}, {4, -1}, {INT64_MAX, INT64_MAX}}) {
    ModelBuilder m;
    m.input("x", {"3"}).constant("s", int64s(sizes));
    m.node("Split", {"x", "s"}, {"a", "b"});
    m.output("a").output("b");
    expect_error(m.import(), ErrorCode::kBadModel, "do not sum to 3");
  }
}

TEST(Shape, PadCropsWhereItIsNegative) {
  expect_values(apply("Pad", ramp({4}), {int64s({-1, 2}), Tensor::scalar<float>(9)}), {5},
                {1, 2, 3, 9, 9});
  expect_values(apply(
                    "Pad", ramp({2, 2}), {int64s({1, 0}), Tensor(), int64s({1})},
                    [](NodeBuilder& n) { n.text("mode", "edge"); }, 18),
                {2, 3}, {0, 0, 1, 2, 2, 3});
}

TEST(Shape, IdentitiesLeaveNoCall) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).constant("one", int64s({1, 1})).constant("same", int64s({2, 3}));
  m.node("Identity", {"x"}, {"a"});
  m.node("Dropout", {"a"}, {"b"});
  m.node("Reshape", {"b", "same"}, {"c"});
  m.node("Transpose", {"c"}, {"d"}).ints("perm", {0, 1});
  m.node("Expand", {"d", "one"}, {"e"});
  m.node("Tile", {"e", "one"}, {"f"});
  m.node("Concat", {"f"}, {"g"}).integer("axis", 0);
  m.node("Cast", {"g"}, {"y"}).integer("to", TensorProto::FLOAT);
  m.output("y");
  EXPECT_THAT(m.ops(), IsEmpty());
}

TEST(Shape, TransposeThatIsNoPermutation) {
  ModelBuilder m;
  m.input("x", {"2", "3"});
  m.node("Transpose", {"x"}, {"y"}).ints("perm", {0, 0});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "perm (0, 0) is no permutation of 2 axes");
}

TEST(Resize, OfTheImageAndOfAnyAxes) {
  const Tensor scales = floats({4}, {1, 1, 2, 2});
  ModelBuilder m;
  m.input("x", {"1", "1", "1", "2"}).constant("s", scales);
  m.node("Resize", {"x", "", "s"}, {"y"}).text("coordinate_transformation_mode", "asymmetric");
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("image.resize2d"));
  expect_values(m.run({floats({1, 1, 1, 2}, {1, 2})})[0], {1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2});
  // The first axis of two.
  expect_values(apply("Resize", ramp({2, 2}), {Tensor(), floats({2}, {2, 1})}), {4, 2},
                {0, 1, 0, 1, 2, 3, 2, 3});
}

TEST(Resize, UpsampleOfOldOperatorSets) {
  expect_values(apply(
                    "Upsample", ramp({1, 1, 1, 2}), {},
                    [](NodeBuilder& n) {
                      n.reals("scales", {1, 1, 1, 2});
                    },
                    7),
                {1, 1, 1, 4}, {0, 0, 1, 1});
}

TEST(Resize, AspectRatioIsKept) {
  Tensor y = apply(
      "Resize", ramp({1, 1, 2, 4}), {Tensor(), Tensor(), int64s({6, 8})},
      [](NodeBuilder& n) {
        n.text("keep_aspect_ratio_policy", "not_larger").ints("axes", {2, 3});
      },
      18);
  EXPECT_EQ(y.shape(), (Shape{1, 1, 4, 8}));
}

TEST(Index, GatherAndNegativeIndices) {
  expect_values(apply("Gather", ramp({3, 2}), {int64s({-1, 0})}), {2, 2}, {4, 5, 0, 1});
}

TEST(Index, NonZeroOfAConstant) {
  ModelBuilder m;
  m.constant("c", floats({2, 2}, {1, 0, 3, 4}));
  m.node("NonZero", {"c"}, {"y"});
  m.output("y");
  expect_values(m.run({})[0], {2, 3}, {0, 1, 1, 0, 0, 1});
}

TEST(Index, OneHotOfNegativeIndices) {
  Tensor y =
      apply("OneHot", int64s({0, -1, 7}), {Tensor::scalar<int64_t>(3), floats({2}, {-1, 1})});
  expect_values(y, {3, 3}, {1, -1, -1, -1, -1, 1, -1, -1, -1});
}

TEST(Index, TopKOfTooMany) {
  ModelBuilder m;
  m.input("x", {"3"}).constant("k", int64s({4}));
  m.node("TopK", {"x", "k"}, {"v", "i"});
  m.output("v");
  expect_error(m.import(), ErrorCode::kBadModel, "k is 4, axis 0 has 3 elements");
}

TEST(Reduce, AxesByAttributeInputAndNone) {
  const Tensor x = ramp({2, 3});
  auto axes = [](NodeBuilder& n) { n.ints("axes", {1}).integer("keepdims", 0); };
  expect_values(apply("ReduceMean", x, {}, axes, 13), {2}, {1, 4});
  expect_values(apply("ReduceMean", x, {int64s({-1})}, {}, 18), {2, 1}, {1, 4});
  auto noop = [](NodeBuilder& n) { n.integer("noop_with_empty_axes", 1); };
  expect_values(apply("ReduceSumSquare", x, {}, noop, 18), {2, 3}, {0, 1, 4, 9, 16, 25});
  expect_values(apply("ReduceSum", x, {}, {}, 13), {1, 1}, {15});
}

TEST(Reduce, AxisNamedTwice) {
  ModelBuilder m;
  m.input("x", {"2", "3"});
  m.node("ReduceMax", {"x"}, {"y"}).ints("axes", {1, -1});
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "axis 1 is named twice");
}

TEST(Reduce, LogSumExpOfLargeNumbers) {
  expect_values(apply("ReduceLogSumExp", floats({2}, {100, 100}), {}), {1}, {100.69314718});
}

TEST(Einsum, KnownResults) {
  struct Case {
    const char* equation;
    Shape x, w, y;
    std::vector<double> values;
  };
  for (const Case& c :
       std::vector<Case>{{"ij,jk->ik", {2, 2}, {2, 2}, {2, 2}, {2, 3, 6, 11}},
                         {"ij,jk", {2, 2}, {2, 2}, {2, 2}, {2, 3, 6, 11}},
                         {"ij,ij->", {2, 2}, {2, 2}, {}, {14}},
                         {"i,j->ji", {2}, {2}, {2, 2}, {0, 0, 0, 1}},
                         {"...ij,...jk->...ik", {1, 2, 2}, {2, 2}, {1, 2, 2}, {2, 3, 6, 11}},
                         {"bij,bjk->bki", {1, 2, 2}, {1, 2, 2}, {1, 2, 2}, {2, 6, 3, 11}},
                         {"ii,i->i", {2, 2}, {2}, {2}, {0, 3}}}) {
    SCOPED_TRACE(c.equation);
    Tensor y = apply("Einsum", ramp(c.x), {ramp(c.w)},
                     [&](NodeBuilder& n) { n.text("equation", c.equation); });
    expect_values(y, c.y, c.values);
  }
}

TEST(Einsum, EquationsThatAreNone) {
  for (const char* equation :
       {"ij->", "ij,jk->iz", "ij,jk->ii", "i1,jk->i", "i..j,jk->ik", "ijk,jk->i"}) {
    SCOPED_TRACE(equation);
    ModelBuilder m;
    m.input("x", {"2", "2"}).input("w", {"2", "2"});
    m.node("Einsum", {"x", "w"}, {"y"}).text("equation", equation);
    m.output("y");
    expect_error(m.import(), ErrorCode::kBadModel, "quation");
  }
}

}  // namespace
}  // namespace collage
