// GridSample at places that lie outside of the image, far outside, and nowhere.
#include <cmath>
#include <limits>

#include "frontend/onnx/model_builder.h"

namespace collage {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A row of five pixels, read at places in pixels.
std::vector<double> sample(const std::string& mode, const std::string& beyond,
                           const std::vector<float>& pixels, const std::vector<float>& places) {
  ModelBuilder m(20);
  const auto count = static_cast<int64_t>(places.size());
  m.input("x", {"1", "1", "5"}).input("grid", {"1", std::to_string(count), "1"});
  m.node("GridSample", {"x", "grid"}, {"y"})
      .text("mode", mode)
      .text("padding_mode", beyond)
      .integer("align_corners", 1);
  m.output("y");
  std::vector<float> grid;
  for (float place : places) grid.push_back(place / 2 - 1);
  return values_of(m.run({floats({1, 1, 5}, pixels), floats({1, count, 1}, grid)})[0]);
}

const std::vector<float> kPixels = {10, 20, 0, 0, 5};

// Keys' weights half-way are -0.09375 and 0.59375.
TEST(GridSample, CubicTapsAreClippedEachByItself) {
  const std::vector<double> values =
      sample("cubic", "border", kPixels, {-0.5f, 4.5f, -1.5f, -2.5f, -100, 100});
  EXPECT_NEAR(values[0], 1.09375 * 10 - 0.09375 * 20, 1e-5);
  EXPECT_NEAR(values[1], 1.09375 * 5 - 0.09375 * 0, 1e-5);
  EXPECT_NEAR(values[2], 10, 1e-5);
  EXPECT_NEAR(values[3], 10, 1e-5);
  EXPECT_NEAR(values[4], 10, 1e-5);
  EXPECT_NEAR(values[5], 5, 1e-5);
}

TEST(GridSample, PlacesThatAreInfiniteInPixelsLieOutside) {
  constexpr float kHuge = 3e38f;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const std::vector<float> places = {-kInfinity, -kHuge, kHuge, kInfinity};
    const std::vector<double> border = sample(mode, "border", kPixels, places);
    EXPECT_EQ(border, (std::vector<double>{10, 10, 5, 5})) << mode;
    const std::vector<double> zeros = sample(mode, "zeros", kPixels, places);
    EXPECT_EQ(zeros, (std::vector<double>{0, 0, 0, 0})) << mode;
    sample(mode, "reflection", kPixels, places);  // is no error
  }
}

TEST(GridSample, ThereIsNoPlaceForNan) {
  for (const char* mode : {"linear", "cubic"}) {
    EXPECT_EQ(sample(mode, "zeros", kPixels, {kNan})[0], 0) << mode;
    EXPECT_TRUE(std::isnan(sample(mode, "border", kPixels, {kNan})[0])) << mode;
    EXPECT_TRUE(std::isnan(sample(mode, "reflection", kPixels, {kNan})[0])) << mode;
  }
  EXPECT_EQ(sample("nearest", "zeros", kPixels, {kNan})[0], 0);
  EXPECT_EQ(sample("nearest", "border", kPixels, {kNan})[0], 10);
}

TEST(GridSample, PixelsOutsideAreZeroWhateverStandsAtTheEdge) {
  for (float edge : {kNan, kInfinity})
    for (const char* mode : {"nearest", "linear", "cubic"})
      EXPECT_EQ(sample(mode, "zeros", {edge, 20, 0, 0, edge}, {-3.5f, 8.5f}),
                (std::vector<double>{0, 0}))
          << mode;
}

}  // namespace
}  // namespace collage
