// Reading and writing by index, by hand and against index arithmetic; indices out of range.
#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

TEST(IndexTest, Take) {
  Tensor x = floats({3, 2}, {0, 1, 10, 11, 20, 21});
  Tensor rows = run("take", {x, ints({2, 1}, {-1, 0})});
  EXPECT_EQ(rows.shape(), (Shape{2, 1, 2}));
  EXPECT_THAT(rows.values<float>(), ElementsAre(20, 21, 0, 1));
  EXPECT_THAT(run("take", {x, ints({}, {1})}, {{"axis", int64_t{1}}}).values<float>(),
              ElementsAre(1, 11, 21));
  EXPECT_THAT(run("take", {x, Tensor::from<int32_t>({2}, {1, 1})}).values<float>(),
              ElementsAre(10, 11, 10, 11));
}

TEST(IndexTest, OutOfRangeIsAnError) {
  Tensor x = floats({3}, {0, 1, 2});
  for (int64_t bad : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(try_run("take", {x, ints({1}, {bad})}).status().code(), ErrorCode::kBadModel);
    EXPECT_EQ(try_run("gather", {x, ints({1}, {bad})}).status().code(), ErrorCode::kBadModel);
    EXPECT_EQ(try_run("gather_nd", {x, ints({1}, {bad})}).status().code(), ErrorCode::kBadModel);
    EXPECT_EQ(try_run("scatter_nd", {x, ints({1, 1}, {bad}), floats({1}, {9})}).status().code(),
              ErrorCode::kBadModel);
    EXPECT_EQ(try_run("scatter_elements", {x, ints({1}, {bad}), floats({1}, {9})}).status().code(),
              ErrorCode::kBadModel);
  }
  EXPECT_EQ(try_run("take", {Tensor::zeros(DType::kFloat32, {0}), ints({1}, {0})}).status().code(),
            ErrorCode::kBadModel);
  Tensor big = Tensor::zeros(DType::kUInt64, {1});
  big.data<uint64_t>()[0] = ~uint64_t{0};
  EXPECT_EQ(try_run("take", {x, big}).status().code(), ErrorCode::kBadModel);
}

TEST(IndexTest, GatherElements) {
  Tensor x = floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THAT(run("gather", {x, ints({2, 3}, {1, 2, 0, 2, 0, 0})}).values<float>(),
              ElementsAre(4, 8, 3, 7, 2, 3));
  EXPECT_THAT(run("gather", {x, ints({3, 1}, {-1, 0, 1})}, {{"axis", int64_t{1}}}).values<float>(),
              ElementsAre(3, 4, 8));
}

// Lines along each axis, many of them and long ones, shorter than the data's elsewhere.
TEST(IndexTest, GatherAndScatterAlongEveryAxis) {
  const Shape data{7, 60, 50}, entries{5, 60, 40};
  for (int64_t axis = 0; axis < 3; ++axis) {
    Tensor x = random(data, 1), updates = random(entries, 2);
    Tensor indices = Tensor::empty(DType::kInt64, entries);
    const int64_t extent = data[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < indices.size(); ++i)
      indices.data<int64_t>()[i] = i * 131 % (2 * extent) - extent;
    Tensor sums = x.clone();
    const Attrs attrs{{"axis", axis}};
    const Tensor gathered = run("gather", {x, indices}, attrs);
    for (int64_t i = 0; i < indices.size(); ++i) {
      int64_t at[] = {i / 2400, i / 40 % 60, i % 40};
      const int64_t index = indices.data<int64_t>()[i];
      at[axis] = index < 0 ? index + extent : index;
      const int64_t element = (at[0] * 60 + at[1]) * 50 + at[2];
      ASSERT_EQ(gathered.data<float>()[i], x.data<float>()[element]);
      sums.data<float>()[element] += updates.data<float>()[i];
    }
    const Tensor scattered = run("scatter_elements", {x, indices, updates},
                                 {{"axis", axis}, {"reduction", std::string("add")}});
    EXPECT_EQ(floats_of(scattered), floats_of(sums));
  }
}

TEST(IndexTest, GatherNd) {
  Tensor x = floats({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(run("gather_nd", {x, ints({2, 3}, {0, 1, 0, 1, 1, 1})}).values<float>(),
              ElementsAre(2, 7));
  Tensor rows = run("gather_nd", {x, ints({2, 1, 2}, {0, 1, -1, 0})});
  EXPECT_EQ(rows.shape(), (Shape{2, 1, 2}));
  EXPECT_THAT(rows.values<float>(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(
      run("gather_nd", {x, ints({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}}).values<float>(),
      ElementsAre(2, 3, 4, 5));
}

TEST(IndexTest, OneHot) {
  Tensor on = floats({}, {5}), off = floats({}, {-1});
  EXPECT_THAT(
      run("one_hot", {ints({3}, {0, -1, 7}), on, off}, {{"depth", int64_t{3}}}).values<float>(),
      ElementsAre(5, -1, -1, -1, -1, 5, -1, -1, -1));
  Tensor first =
      run("one_hot", {ints({2}, {1, 0}), on, off}, {{"depth", int64_t{2}}, {"axis", int64_t{0}}});
  EXPECT_THAT(first.values<float>(), ElementsAre(-1, 5, 5, -1));
}

TEST(IndexTest, ScatterElements) {
  Tensor x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  Tensor indices = ints({2, 2}, {2, 0, -2, -2}), updates = floats({2, 2}, {10, 20, 30, 40});
  auto scatter = [&](std::string reduction) {
    return floats_of(run("scatter_elements", {x, indices, updates},
                         {{"axis", int64_t{1}}, {"reduction", std::move(reduction)}}));
  };
  EXPECT_THAT(scatter("update"), ElementsAre(20, 1, 10, 3, 40, 5));
  EXPECT_THAT(scatter("add"), ElementsAre(20, 1, 12, 3, 74, 5));
  EXPECT_THAT(scatter("mul"), ElementsAre(0, 1, 20, 3, 4800, 5));
  EXPECT_THAT(scatter("min"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(scatter("max"), ElementsAre(20, 1, 10, 3, 40, 5));
}

TEST(IndexTest, ScatterNd) {
  Tensor x = floats({2, 2}, {0, 1, 2, 3});
  EXPECT_THAT(run("scatter_nd", {x, ints({1, 1}, {-1}), floats({1, 2}, {8, 9})}).values<float>(),
              ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(run("scatter_nd", {x, ints({2, 2}, {0, 1, 0, 1}), floats({2}, {8, 9})},
                  {{"mode", std::string("add")}})
                  .values<float>(),
              ElementsAre(0, 18, 2, 3));
}

}  // namespace
}  // namespace collage
