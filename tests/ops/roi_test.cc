// Regions of images on values worked out by hand, and what is only known when they are there.
#include <cmath>

#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

Attrs attrs_of(Ints size, int64_t ratio, bool half_pixel, const char* mode = "avg") {
  return {{"pooled_size", std::move(size)},
          {"sample_ratio", ratio},
          {"mode", std::string(mode)},
          {"half_pixel", half_pixel}};
}

// 0, 1, 2 … in each row, and ten times the row.
Tensor slope(int64_t height, int64_t width) {
  std::vector<float> values;
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j) values.push_back(static_cast<float>(10 * i + j));
  return floats({1, 1, height, width}, values);
}

std::vector<float> align(const Tensor& data, const std::vector<float>& roi, Attrs attrs) {
  return floats_of(
      run("vision.roi_align", {data, floats({1, 4}, roi), ints({1}, {0})}, std::move(attrs)));
}

TEST(RoiAlignTest, ReadsTheMiddlesOfCells) {
  // Bins of 2 by 1 pixels, read at (x, y) = (2, 1.5) and (4, 1.5).
  EXPECT_THAT(align(slope(6, 6), {1, 1, 5, 2}, attrs_of({1, 2}, 1, false)), ElementsAre(17, 19));
  // With half pixels each place is half a pixel lower.
  EXPECT_THAT(align(slope(6, 6), {1, 1, 5, 2}, attrs_of({1, 2}, 1, true)),
              ElementsAre(11.5f, 13.5f));
  // A slope's mean is its middle, however many cells there are.
  for (int64_t ratio : {0, 2, 5})
    EXPECT_NEAR(align(slope(6, 6), {1, 1, 4, 3}, attrs_of({1, 1}, ratio, false))[0], 22.5, 1e-5);
}

TEST(RoiAlignTest, ScalesTheCorners) {
  Attrs attrs = attrs_of({1, 2}, 1, false);
  attrs.set("spatial_scale", 0.25);
  EXPECT_THAT(align(slope(6, 6), {4, 4, 20, 8}, attrs), ElementsAre(17, 19));
}

TEST(RoiAlignTest, ThinRegionsAreAPixelWideWithoutHalfPixels) {
  EXPECT_THAT(align(slope(6, 6), {1, 1, 1, 1}, attrs_of({1, 1}, 1, false)), ElementsAre(16.5f));
  EXPECT_THAT(align(slope(6, 6), {1, 1, 1, 1}, attrs_of({1, 1}, 1, true)), ElementsAre(5.5f));
  // No cells at all.
  EXPECT_THAT(align(slope(6, 6), {3, 3, 1, 1}, attrs_of({1, 1}, 0, true)), ElementsAre(0));
}

TEST(RoiAlignTest, EdgesAreHeldForOnePixelAndZerosLieBeyond) {
  // Read at x = -0.5, 0.5, 1.5 … of a row 0, 1: held, between, held, and nothing beyond 2.
  EXPECT_THAT(align(slope(1, 2), {-1, 0, 3, 1}, attrs_of({1, 4}, 1, false)),
              ElementsAre(0, 0.5f, 1, 0));
}

TEST(RoiAlignTest, TheMaximumIsThatOfWeightedPixels) {
  // At (0.5, 0.5) each pixel of 4, 8, 12, 16 counts a quarter: the mean is 10, the most 4.
  const Tensor data = floats({1, 1, 2, 2}, {4, 8, 12, 16});
  EXPECT_THAT(align(data, {0, 0, 1, 1}, attrs_of({1, 1}, 1, false)), ElementsAre(10));
  EXPECT_THAT(align(data, {0, 0, 1, 1}, attrs_of({1, 1}, 1, false, "max")), ElementsAre(4));
}

TEST(RoiAlignTest, PicksTheImageOfEachRegion) {
  const Tensor data = floats({2, 1, 1, 1}, {3, 5});
  const Tensor rois = floats({3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  const Tensor y =
      run("vision.roi_align", {data, rois, ints({3}, {1, 0, -1})}, attrs_of({1, 1}, 1, false));
  EXPECT_THAT(y.values<float>(), ElementsAre(5, 3, 5));
}

TEST(RoiAlignTest, RefusesRegionsThatAreNone) {
  auto message = [](std::vector<float> roi, int64_t batch) {
    return try_run("vision.roi_align", {slope(2, 2), floats({1, 4}, roi), ints({1}, {batch})},
                   attrs_of({1, 1}, 0, false))
        .status()
        .to_string();
  };
  EXPECT_THAT(message({0, 0, 1, 1}, 1), ::testing::HasSubstr("index 1 is out of range"));
  EXPECT_THAT(message({0, 0, NAN, 1}, 0), ::testing::HasSubstr("a region of"));
  EXPECT_THAT(message({0, 0, 1, 1e20f}, 0), ::testing::HasSubstr("a region of"));
  // More samples than anybody wants: 2^20 bins of 8 cells.
  EXPECT_FALSE(try_run("vision.roi_align",
                       {slope(2, 2), floats({1, 4}, {0, 0, 1, 1}), ints({1}, {0})},
                       attrs_of({1 << 20, 1}, 8, false))
                   .ok());
}

TEST(RoiAlignTest, HalfPrecisionAndDoubles) {
  const std::vector<Tensor> narrow = {
      run("cast", {slope(6, 6)}, {{"dtype", DType::kFloat16}}),
      run("cast", {floats({1, 4}, {1, 1, 5, 2})}, {{"dtype", DType::kFloat16}}), ints({1}, {0})};
  expect_near(run("vision.roi_align", narrow, attrs_of({1, 2}, 1, false)), {17, 19});
  const std::vector<Tensor> wide = {
      run("cast", {slope(6, 6)}, {{"dtype", DType::kFloat64}}),
      run("cast", {floats({1, 4}, {1, 1, 5, 2})}, {{"dtype", DType::kFloat64}}), ints({1}, {0})};
  expect_near(run("vision.roi_align", wide, attrs_of({1, 2}, 1, false)), {17, 19});
}

}  // namespace
}  // namespace collage
