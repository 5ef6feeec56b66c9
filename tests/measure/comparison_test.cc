#include "verify/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/magnitudes.h"

namespace collage {
namespace {

Tensor floats(const std::vector<float>& values) {
  return Tensor::from<float>({static_cast<int64_t>(values.size())}, values);
}

bool within(const std::vector<float>& actual, const std::vector<float>& expected,
            const Tolerance& tolerance = {.of_scale = 1e-6, .relative = 1e-6}) {
  return compare_tensors(floats(actual), floats(expected), tolerance).within;
}

TEST(Comparison, NanAndInfinityMustStandInTheSamePlaces) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  EXPECT_TRUE(within({nan, inf, -inf, 1}, {nan, inf, -inf, 1}));
  for (float wrong : {nan, inf, -inf}) {
    EXPECT_FALSE(within({wrong, 1}, {2, 1})) << wrong;
    EXPECT_FALSE(within({2, 1}, {wrong, 1})) << wrong;
  }
  EXPECT_FALSE(within({inf, 1}, {-inf, 1}));
  EXPECT_FALSE(within({nan, 1}, {inf, 1}));
  EXPECT_FALSE(within({3e38f, 1}, {inf, 1}));
}

// oneDNN's exponential computes half of it first.
TEST(Comparison, WhatIsHalfANormalNumberMayBeZero) {
  EXPECT_TRUE(within({0, 1, 0}, {1.65e-38f, 1, 1e-40f}));
  EXPECT_FALSE(within({0, 1e-30f}, {3e-38f, 1e-30f}, {}));
  // Of a tensor that is nothing else it is all.
  EXPECT_FALSE(within({0, 0}, {1.65e-38f, 2.2e-38f}));
}

TEST(Comparison, IsRelativeToTheSizeOfElementsAlike) {
  const Tolerance tolerance{.of_scale = 1e-4};
  EXPECT_TRUE(within({1.00005f, 1, 1}, {1, 1, 1}, tolerance));
  EXPECT_FALSE(within({1.0002f, 1, 1}, {1, 1, 1}, tolerance));
  EXPECT_TRUE(within({0.02f, 300, 300}, {0, 300, 300}, tolerance));
  EXPECT_FALSE(within({1e-7f}, {0}, tolerance)) << "all zeros allow nothing";
}

TEST(Comparison, AnOutlierIsNoScaleOfOthers) {
  for (const float outlier : {-10000.0f, -3.4e38f, 1e6f}) {
    std::vector<float> expected, wrong, right;
    for (int i = 0; i < 300; ++i) {
      const float value = std::sin(static_cast<float>(i));
      expected.push_back(i % 3 == 0 ? outlier : value);
      wrong.push_back(i % 3 == 0 ? outlier : 0.01f);
      right.push_back(i % 3 == 0 ? outlier * (1 + 1e-6f) : value + 1e-5f);
    }
    EXPECT_FALSE(within(wrong, expected, model_tolerance())) << outlier;
    EXPECT_TRUE(within(right, expected, model_tolerance())) << outlier;
  }
  EXPECT_FALSE(within({0.5f, -1e4f}, {0.4f, -1e4f}, model_tolerance()));
}

// Floats are sorted by the exponents that they are stored with, many at a time.
TEST(Comparison, FloatsHaveTheScalesThatEqualDoublesHave) {
  std::vector<float> values;
  std::vector<double> wide;
  for (int i = 0; i < 200000; ++i) {
    const float size = i % 7 == 0 ? 1e-40f : i % 11 == 0 ? 1e20f : 1;
    values.push_back(i % 5 == 0 ? 0 : size * std::sin(static_cast<float>(i)));
    wide.push_back(values.back());
  }
  const Magnitudes of_floats(floats(values));
  const Magnitudes of_doubles(Tensor::from<double>({static_cast<int64_t>(wide.size())}, wide));
  EXPECT_EQ(of_floats.largest(), of_doubles.largest());
  EXPECT_EQ(of_floats.group_counts(), of_doubles.group_counts());
  for (const double value : wide) {
    ASSERT_EQ(of_floats.scale(value), of_doubles.scale(value)) << value;
    ASSERT_EQ(of_floats.group(value), of_doubles.group(value)) << value;
  }
}

TEST(Comparison, LargeDoublesAllowNoMore) {
  const Tensor expected = Tensor::from<double>({3}, {1e200, 1, -1e300});
  const Tensor wrong = Tensor::from<double>({3}, {1e200, 2, -1e300});
  EXPECT_TRUE(compare_tensors(expected, expected, model_tolerance()).within);
  EXPECT_FALSE(compare_tensors(wrong, expected, model_tolerance()).within);
  EXPECT_FALSE(std::isnan(compare_tensors(wrong, expected, model_tolerance()).rms_rel));
}

TEST(Comparison, WhatRoundingsMoveIsAllowedWhereTheyDo) {
  Tolerance tolerance{.of_moved = 2};
  tolerance.moved = std::make_shared<std::vector<double>>(std::vector<double>{0.1, 0, INFINITY});
  EXPECT_TRUE(within({1.15f, 1, 7}, {1, 1, 1}, tolerance));
  EXPECT_FALSE(within({1.25f, 1, 1}, {1, 1, 1}, tolerance));
  EXPECT_FALSE(within({1, 1.15f, 1}, {1, 1, 1}, tolerance));
  EXPECT_TRUE(within({1, 1, NAN}, {1, 1, 1}, tolerance)) << "may be anything";
}

TEST(Comparison, SaysWhichElementIsWrong) {
  Difference difference = compare_tensors(floats({1, 2, 7}), floats({1, 2, 3}), {});
  EXPECT_FALSE(difference.within);
  EXPECT_EQ(difference.reason, "element 2: 7 instead of 3 (allowed 2.35e-38)") << "may be flushed";
  EXPECT_EQ(difference.max_abs, 4);
  difference =
      compare_tensors(Tensor::from<int32_t>({1}, {7}), Tensor::from<int32_t>({1}, {3}), {});
  EXPECT_EQ(difference.reason, "element 0: 7 instead of 3");
}

TEST(Comparison, LargeTensorsAreJudgedAsWhole) {
  std::vector<float> expected(200000, 1);
  expected[150000] = 3;
  std::vector<float> actual = expected;
  actual[190000] = 5;
  actual[70000] = 2;
  actual[120000] = 7;
  const Difference difference =
      compare_tensors(floats(actual), floats(expected), {.absolute = 0.5});
  EXPECT_EQ(difference.reason, "element 70000: 2 instead of 1 (allowed 0.5)");
  EXPECT_EQ(difference.worst_element, 120000);
  EXPECT_EQ(difference.max_abs, 6);
  EXPECT_EQ(difference.max_rel, 2);
  EXPECT_EQ(difference.wrong, 3);
  EXPECT_NEAR(difference.rms_rel, std::sqrt((1 + 36 + 16) / (199999 + 9.0)), 1e-12);
}

TEST(Comparison, IntegersAndBoolsAreExact) {
  Tensor a = Tensor::from<int64_t>({2}, {1, 2}), b = Tensor::from<int64_t>({2}, {1, 3});
  EXPECT_TRUE(compare_tensors(a, a, {}).within);
  EXPECT_FALSE(compare_tensors(a, b, {.of_scale = 1, .relative = 1}).within);
  Tensor yes = Tensor::zeros(DType::kBool, {1}), odd = yes.clone();
  yes.data<uint8_t>()[0] = 1;
  odd.data<uint8_t>()[0] = 255;
  EXPECT_TRUE(compare_tensors(yes, yes, {}).within);
  EXPECT_FALSE(compare_tensors(odd, yes, {}).within) << "a bool is one byte, 0 or 1";
}

TEST(Comparison, ManySmallErrorsShowInTheirMean) {
  const Tolerance tolerance{.of_scale = 1e-3, .mean = 0.1};
  std::vector<float> expected(100, 1), all = expected, one = expected;
  for (float& value : all) value += 5e-4f;
  one[7] += 5e-4f;
  EXPECT_TRUE(within(one, expected, tolerance));
  Difference difference = compare_tensors(floats(all), floats(expected), tolerance);
  EXPECT_FALSE(difference.within);
  EXPECT_NEAR(difference.mean_of_allowed, 0.5 / std::hypot(0.1, 0.05), 0.01) << "of few elements";
  EXPECT_EQ(difference.reason.substr(0, 66),
            "errs by 0.5 of what each element may in root mean square (allowed ");
}

TEST(Comparison, TheUsersBudgetIsRelativeToTheLargestValueAlike) {
  EXPECT_TRUE(within({0.9f, 0, 100}, {0, 0, 100}, model_tolerance(1e-2)));
  EXPECT_FALSE(within({1.1f, 0, 100}, {0, 0, 100}, model_tolerance(1e-2)));
  EXPECT_FALSE(within({0.9f, 0, 100}, {0, 0, 100}, model_tolerance()));
  Difference difference = compare_tensors(floats({3, 4}), floats({3, 5}), {.of_scale = 1});
  EXPECT_FLOAT_EQ(static_cast<float>(difference.rms_rel), 1 / std::sqrt(34.f));
}

TEST(Comparison, HalfPrecisionMayRoundOtherwise) {
  // One of many zeros beside a hundred.
  const auto among_many = [](float error, const Tolerance& tolerance) {
    std::vector<float> expected(50, 0), actual;
    expected[7] = 100;
    actual = expected;
    actual[3] = error;
    return within(actual, expected, tolerance);
  };
  EXPECT_TRUE(among_many(0.9f, half_tolerance(DType::kFloat16)));
  EXPECT_FALSE(among_many(1.1f, half_tolerance(DType::kFloat16)));
  EXPECT_TRUE(among_many(1.9f, half_tolerance(DType::kFloat16, 1e-2)));
  EXPECT_TRUE(among_many(7, half_tolerance(DType::kBFloat16)));
  EXPECT_FALSE(within({0.9f, 0.9f, 99.1f}, {0, 0, 100}, half_tolerance(DType::kFloat16)))
      << "all of them err much";
  // Neighbours of a half-width type are equal where what was rounded may differ.
  const auto of = [](DType dtype) { return kept_as(model_tolerance(), dtype); };
  EXPECT_TRUE(within({1 + 0x1p-7f, 1}, {1, 1}, of(DType::kBFloat16)));
  EXPECT_FALSE(within({1 + 0x1p-6f, 1}, {1, 1}, of(DType::kBFloat16)));
  EXPECT_TRUE(within({10 + 0x1p-7f, 10}, {10, 10}, of(DType::kFloat16)));
  EXPECT_FALSE(within({10.03125f, 10}, {10, 10}, of(DType::kFloat16)));
  EXPECT_FALSE(within({10 + 0x1p-6f, 10}, {10, 10}, of(DType::kFloat32)));
}

// Of real numbers, and of integers of 8 bits, whose range is their scale.
TEST(Comparison, QuantisedModelsMayErrMuchWhereOthersErrToo) {
  const auto accepts = [](size_t wrong, double by, double max_error = 0) {
    std::vector<float> reals(1000), wrong_reals;
    std::vector<uint8_t> bytes(1000), wrong_bytes;
    for (size_t i = 0; i < reals.size(); ++i) {
      reals[i] = i % 2 == 0 ? 1 : -1;
      bytes[i] = static_cast<uint8_t>(i % 200);
      wrong_reals.push_back(reals[i] + (i < wrong ? static_cast<float>(by) : 0));
      wrong_bytes.push_back(
          static_cast<uint8_t>(bytes[i] + (i < wrong ? std::lround(256 * by) : 0)));
    }
    const Tolerance tolerance = quantised_tolerance(max_error);
    const bool accepted = within(wrong_reals, reals, tolerance);
    const Tensor a = Tensor::from<uint8_t>({1000}, wrong_bytes),
                 b = Tensor::from<uint8_t>({1000}, bytes);
    EXPECT_EQ(compare_tensors(a, b, tolerance).within, accepted) << wrong << " by " << by;
    return accepted;
  };
  EXPECT_TRUE(accepts(1, 0.018));
  EXPECT_FALSE(accepts(1, 0.03)) << "alone";
  EXPECT_TRUE(accepts(1, 0.03, 0.07));
  EXPECT_FALSE(accepts(3, 0.075));
  EXPECT_TRUE(accepts(5, 0.075));
  EXPECT_FALSE(accepts(5, 0.09));
  EXPECT_TRUE(accepts(5, 0.09, 0.02));
  EXPECT_TRUE(accepts(1000, 0.03));
  EXPECT_TRUE(accepts(200, 0.075)) << "a fifth of them";
  EXPECT_FALSE(accepts(400, 0.075)) << "in root mean square";
  EXPECT_FALSE(accepts(1000, 0.05));
}

// What neighbours of integers in the middle of a model change are errors of all logits; that the
// two largest of one row are swapped is none of those.
TEST(Comparison, AChangedDecisionOfAQuantisedModelIsNoRounding) {
  constexpr size_t kRows = 100, kClasses = 10;
  std::vector<float> expected, actual;
  for (size_t i = 0; i < kRows * kClasses; ++i) {
    const auto at = static_cast<float>(i);
    expected.push_back(std::sin(at * at));
    actual.push_back(expected.back() + 2e-3f * std::cos(3 * at * at));
  }
  // The first of row 42 is the most likely one, by less than any element may be off.
  float* row = &expected[42 * kClasses];
  row[0] = 0.99f;
  row[1] = 0.93f;
  std::copy_n(row, kClasses, &actual[42 * kClasses]);
  EXPECT_TRUE(within(actual, expected, quantised_tolerance()));
  std::swap(actual[42 * kClasses], actual[42 * kClasses + 1]);
  const Difference difference =
      compare_tensors(floats(actual), floats(expected), quantised_tolerance());
  EXPECT_FALSE(difference.within);
  EXPECT_EQ(difference.reason.substr(0, 41), "element 420: 0.930000007 instead of 0.990");
  // Where all err as much, so may these.
  for (size_t i = 0; i < actual.size(); ++i)
    if (i / kClasses != 42) actual[i] += 1e-2f * std::cos(static_cast<float>(5 * i));
  EXPECT_TRUE(within(actual, expected, quantised_tolerance()));
}

TEST(Comparison, OtherDtypesOrShapesDiffer) {
  EXPECT_FALSE(
      compare_tensors(floats({1, 2}), floats({1, 2}).reshaped({2, 1}), {.of_scale = 1}).within);
  EXPECT_FALSE(
      compare_tensors(Tensor::from<int64_t>({1}, {1}), floats({1}), {.of_scale = 1}).within);
}

TEST(Comparison, OutputsThatAreAllAlikeProveNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(proves_nothing(floats({0, 0, -0.0f})), "all 0");
  EXPECT_EQ(proves_nothing(floats({nan, nan})), "all NaN");
  EXPECT_EQ(proves_nothing(floats({2, 2, 2})), "all the same");
  EXPECT_EQ(proves_nothing(floats({0, nan})), "all 0");
  std::vector<float> sparse(100);
  sparse[7] = 1;
  EXPECT_EQ(proves_nothing(floats(sparse)), "almost all 0");
  EXPECT_EQ(proves_nothing(Tensor::from<int64_t>({3}, {0, 0, 0})), "all 0");
  EXPECT_EQ(proves_nothing(Tensor::from<int64_t>({3}, {4, 4, 4})), "all the same");
  for (const std::vector<float>& telling : {std::vector<float>{2}, {0, 1}, {nan, 1}, {}})
    EXPECT_EQ(proves_nothing(floats(telling)), "") << telling.size();
  EXPECT_EQ(proves_nothing(Tensor::from<int64_t>({3}, {0, 0, 1})), "") << "indices may be sparse";
}

}  // namespace
}  // namespace collage
