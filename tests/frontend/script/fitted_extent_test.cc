// Terms found from the values of extents.
#include "frontend/script/fitted_extent.h"

#include <gtest/gtest.h>

#include <functional>

namespace collage::tensor_program {
namespace {

using Extent = std::function<std::optional<int64_t>(int64_t n, int64_t m)>;

std::string fitted(const Extent& extent, int64_t step = 3360) {
  const ExtentPoints points = ExtentPoints::of({"n", "m"}, step, 16);
  std::vector<std::optional<int64_t>> values;
  for (const Symbols& at : points.points) values.push_back(extent(at.at("n"), at.at("m")));
  return fitted_extent(points, values).value_or("?");
}

TEST(FittedExtent, Polynomials) {
  EXPECT_EQ(fitted([](int64_t, int64_t) { return 7; }), "7");
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return n; }), "n");
  EXPECT_EQ(fitted([](int64_t n, int64_t m) { return m + n + 3; }), "n + m + 3");
  EXPECT_EQ(fitted([](int64_t n, int64_t m) { return 3 * m * n; }), "3 * n * m");
  EXPECT_EQ(fitted([](int64_t n, int64_t m) { return 2 * n * n - n * m - 5; }),
            "2 * n * n - n * m - 5");
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return 20000 - n; }), "20000 - n");
}

TEST(FittedExtent, DivisionsRoundDown) {
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return n / 2; }), "n / 2");
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return (n - 1) / 2 + 1; }), "(n + 1) / 2");
  EXPECT_EQ(fitted([](int64_t n, int64_t m) { return (n * m + 2) / 3; }), "(n * m + 2) / 3");
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return (3 * n + 5) / 16; }), "(3 * n + 5) / 16");
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return n / 2; }, 96), "n / 2");
}

TEST(FittedExtent, PointsWithoutAValueDecideNothing) {
  EXPECT_EQ(fitted([](int64_t n, int64_t) -> std::optional<int64_t> {
              if (n % 2 == 0) return n / 2;
              return std::nullopt;
            }),
            "n / 2");
}

TEST(FittedExtent, WhatIsNoPolynomialHasNone) {
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return n % 3; }), "?");
  EXPECT_EQ(fitted([](int64_t n, int64_t) { return n * n * n; }), "?");
  EXPECT_EQ(fitted([](int64_t n, int64_t m) { return m % 2 == 1 ? n : n + 1; }), "?");
}

}  // namespace
}  // namespace collage::tensor_program
