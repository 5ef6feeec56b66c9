// Operators that move elements by position, against index arithmetic and by hand.
#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

Tensor counted(Shape shape) {
  Tensor x = Tensor::empty(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i);
  return x;
}

TEST(ViewTest, RenameDimensionsAndShareStorage) {
  Tensor x = counted({1, 3, 1, 4});
  auto shape_of = [&](std::string_view op, Attrs attrs) {
    Tensor y = run(op, {x}, std::move(attrs));
    EXPECT_EQ(y.raw(), x.raw());
    return y.shape();
  };
  EXPECT_EQ(shape_of("reshape", {{"newshape", Ints{6, 2}}}), (Shape{6, 2}));
  EXPECT_EQ(shape_of("squeeze", {}), (Shape{3, 4}));
  EXPECT_EQ(shape_of("squeeze", {{"axis", Ints{-2}}}), (Shape{1, 3, 4}));
  EXPECT_EQ(shape_of("expand_dims", {{"axis", int64_t{1}}}), (Shape{1, 1, 3, 1, 4}));
  EXPECT_EQ(shape_of("expand_dims", {{"axis", int64_t{-1}}, {"num_newaxis", int64_t{2}}}),
            (Shape{1, 3, 1, 4, 1, 1}));
  EXPECT_EQ(shape_of("nn.batch_flatten", {}), (Shape{1, 12}));
}

TEST(RearrangeTest, TransposeEveryPermutation) {
  Tensor x = random({2, 3, 4, 5}, 1);
  Ints axes = {0, 1, 2, 3};
  do {
    Tensor y = run("transpose", {x}, {{"axes", axes}});
    for (Index i(y.shape()); i; ++i) {
      Shape from(4);
      for (size_t d = 0; d < 4; ++d) from[static_cast<size_t>(axes[d])] = i[d];
      ASSERT_EQ(y.data<float>()[i.flat()], at(x, from));
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
}

TEST(RearrangeTest, TransposeOfEveryElementSize) {
  for (DType dtype :
       {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kInt64, DType::kBool}) {
    Tensor x = random_tensor({{3, 5}, dtype}, 1, {0, 9});
    Tensor y = run("transpose", {x});
    ASSERT_EQ(y.shape(), (Shape{5, 3}));
    for (int64_t i = 0; i < 15; ++i)
      EXPECT_EQ(y.element_as_double(i), x.element_as_double(i % 3 * 5 + i / 3));
  }
}

TEST(RearrangeTest, SliceFollowsPython) {
  Tensor x = counted({10});
  auto slice = [&](int64_t begin, int64_t end, int64_t step) {
    return floats_of(run("strided_slice", {x},
                         {{"begin", Ints{begin}}, {"end", Ints{end}}, {"strides", Ints{step}}}));
  };
  EXPECT_THAT(slice(2, 5, 1), ElementsAre(2, 3, 4));
  EXPECT_THAT(slice(1, 8, 3), ElementsAre(1, 4, 7));
  EXPECT_THAT(slice(-3, 100, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(slice(-100, 2, 1), ElementsAre(0, 1));
  EXPECT_THAT(slice(5, 2, 1), ElementsAre());
  EXPECT_THAT(slice(7, 2, -2), ElementsAre(7, 5, 3));
  EXPECT_THAT(slice(2, INT64_MIN, -1), ElementsAre(2, 1, 0));
  EXPECT_THAT(slice(INT64_MAX, -4, -1), ElementsAre(9, 8, 7));
  EXPECT_THAT(slice(0, INT64_MAX, INT64_MAX), ElementsAre(0));
  EXPECT_THAT(slice(9, INT64_MIN, INT64_MIN), ElementsAre(9));
}

TEST(RearrangeTest, SliceOfNamedAxes) {
  Tensor y = run(
      "strided_slice", {counted({2, 3, 4})},
      {{"begin", Ints{1, 0}}, {"end", Ints{2, 9}}, {"strides", Ints{1, 3}}, {"axes", Ints{1, -1}}});
  EXPECT_EQ(y.shape(), (Shape{2, 1, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(4, 7, 16, 19));
}

TEST(RearrangeTest, ReverseTileRepeatBroadcastFull) {
  Tensor x = counted({2, 2});
  EXPECT_THAT(run("reverse", {x}, {{"axis", Ints{1}}}).values<float>(), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(run("reverse", {x}, {{"axis", Ints{0, 1}}}).values<float>(), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(run("tile", {x}, {{"reps", Ints{1, 2}}}).values<float>(),
              ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_EQ(run("tile", {x}, {{"reps", Ints{3, 1, 1}}}).shape(), (Shape{3, 2, 2}));
  EXPECT_THAT(run("repeat", {x}, {{"repeats", int64_t{2}}, {"axis", int64_t{1}}}).values<float>(),
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(run("repeat", {x}, {{"repeats", int64_t{2}}, {"axis", int64_t{0}}}).values<float>(),
              ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(
      run("broadcast_to", {floats({2, 1}, {5, 6})}, {{"shape", Ints{2, 3}}}).values<float>(),
      ElementsAre(5, 5, 5, 6, 6, 6));
  EXPECT_THAT(run("full", {ints({}, {7})}, {{"shape", Ints{3}}}).values<int64_t>(),
              ElementsAre(7, 7, 7));
}

// The definitions of ONNX: reshape, transpose, reshape.
TEST(RearrangeTest, DepthToSpaceIsATransposeOfBlocks) {
  Tensor x = random({2, 12, 3, 5}, 1);
  auto by_transpose = [&](Ints split, Ints axes) {
    Tensor y = run("reshape", {x}, {{"newshape", std::move(split)}});
    y = run("transpose", {y}, {{"axes", std::move(axes)}});
    return floats_of(y);
  };
  Tensor dcr = run("nn.depth_to_space", {x}, {{"block_size", int64_t{2}}});
  EXPECT_EQ(dcr.shape(), (Shape{2, 3, 6, 10}));
  EXPECT_EQ(floats_of(dcr), by_transpose({2, 2, 2, 3, 3, 5}, {0, 3, 4, 1, 5, 2}));
  Tensor crd =
      run("nn.depth_to_space", {x}, {{"block_size", int64_t{2}}, {"mode", std::string("CRD")}});
  EXPECT_EQ(floats_of(crd), by_transpose({2, 3, 2, 2, 3, 5}, {0, 1, 4, 2, 5, 3}));
  EXPECT_EQ(floats_of(run("nn.space_to_depth", {dcr}, {{"block_size", int64_t{2}}})), floats_of(x));
}

TEST(JoinTest, ConcatenateStackSplit) {
  Tensor a = counted({2, 1}), b = counted({2, 2});
  EXPECT_THAT(run("concatenate", {a, b}, {{"axis", int64_t{-1}}}, true).values<float>(),
              ElementsAre(0, 0, 1, 1, 2, 3));
  EXPECT_THAT(run("concatenate", {b, b}, {{"axis", int64_t{0}}}, true).values<float>(),
              ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  Tensor stacked = run("stack", {b, b}, {{"axis", int64_t{1}}}, true);
  EXPECT_EQ(stacked.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(stacked.values<float>(), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(run("stack", {b, b}, {{"axis", int64_t{-1}}}, true).values<float>(),
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  auto parts = run_all("split", {counted({2, 4})},
                       {{"indices_or_sections", Ints{1, 1}}, {"axis", int64_t{1}}});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0].values<float>(), ElementsAre(0, 4));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
  EXPECT_THAT(parts[2].values<float>(), ElementsAre(1, 2, 3, 5, 6, 7));
  EXPECT_EQ(run_all("split", {counted({6})}, {{"indices_or_sections", int64_t{3}}}).size(), 3u);
}

}  // namespace
}  // namespace collage
