// Winograd: its matrices, its shared transforms, and the variants it adds over a matrix of shapes.
#include <random>

#include "backend/native/native_backend.h"
#include "backend/native/templates/cook_toom.h"
#include "check.h"

namespace collage::native {
namespace {

/// Of the matrix that transforms data: a coefficient of the product of x - p over all other points.
double input_entry(size_t product, size_t input, size_t products) {
  const std::vector<double> all = {0, 1, -1, 0.5, -2};
  std::vector<double> polynomial{1};  // constant first
  for (size_t a = 0; a + 1 < products; ++a) {
    if (a == product) continue;
    polynomial.push_back(0);
    for (size_t i = polynomial.size(); i-- > 0;)
      polynomial[i] = (i > 0 ? polynomial[i - 1] : 0) - all[a] * polynomial[i];
  }
  return input < polynomial.size() ? polynomial[input] : 0;
}

TEST(CookToomTest, MatricesAndTransformsFilter) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> real(-1, 1);
  for (const int outputs : {2, 4}) {
    const CookToom& form = CookToom::of(outputs);
    ASSERT_EQ(form.outputs(), outputs);
    const auto n = static_cast<size_t>(form.products());
    std::vector<double> data(n), g(3), transformed(n), products(n);
    for (double& d : data) d = real(random);
    for (double& w : g) w = real(random);
    const std::vector<double> shared = form.transform_input(data);
    for (size_t a = 0; a < n; ++a) {
      double weight = 0;
      for (size_t i = 0; i < n; ++i) transformed[a] += input_entry(a, i, n) * data[i];
      for (int j = 0; j < 3; ++j) weight += form.weight_entry(static_cast<int>(a), j) * g[j];
      products[a] = transformed[a] * weight;
      EXPECT_NEAR(shared[a], transformed[a], 1e-12);
    }
    const std::vector<double> result = form.transform_output(products);
    ASSERT_EQ(result.size(), static_cast<size_t>(outputs));
    for (size_t i = 0; i < result.size(); ++i) {
      double by_matrix = 0;
      for (size_t a = 0; a < n; ++a)
        by_matrix += form.output_entry(static_cast<int>(i), static_cast<int>(a)) * products[a];
      EXPECT_NEAR(result[i], data[i] * g[0] + data[i + 1] * g[1] + data[i + 2] * g[2], 1e-12);
      EXPECT_NEAR(by_matrix, result[i], 1e-12);
    }
  }
}

struct WinogradCase {
  const char* name;
  Shape data;
  int64_t out_channels;
  Ints padding;
};

Expr conv(const Expr& data, const WinogradCase& c) {
  Shape weight{c.out_channels, c.data[1]};
  weight.insert(weight.end(), c.data.size() - 2, 3);
  return call("nn.conv" + std::to_string(c.data.size() - 2) + "d", {data, weights(weight)},
              {{"padding", c.padding}});
}

/// How many variants are Winograd's.
int winograd_variants(const Function& function) {
  auto variants =
      make_native_backend()->variants(function, Target{"native", {}, {}}, CompileOptions{2, ""});
  if (!variants.ok()) return 0;
  int count = 0;
  for (const Variant& v : *variants) {
    const bool rounds = v.rounding.limit() == RoundingLimit::kDefault;
    EXPECT_EQ(rounds, v.name.starts_with("winograd")) << v.to_string();
    EXPECT_EQ(rounds, v.work.multiplications < 1) << v.to_string();
    count += rounds;
  }
  return count;
}

class WinogradTest : public ::testing::TestWithParam<WinogradCase> {};

TEST_P(WinogradTest, MatchesTheReference) {
  const WinogradCase& c = GetParam();
  const Expr x = var("x", c.data);
  const Function f = function({x}, conv(x, c));
  check_function(f, {.relaxed_tolerance = 2e-5});
  EXPECT_GE(winograd_variants(f), 1);
}

TEST_P(WinogradTest, WithBiasResidualAndActivation) {
  const WinogradCase& c = GetParam();
  const Expr x = var("x", c.data);
  const Expr y = call("nn.bias_add", {conv(x, c), weights({c.out_channels})});
  const Expr r = var("r", y->tensor_type().shape);
  check_function(function({x, r}, call("nn.relu", {call("add", {y, r})})),
                 {.relaxed_tolerance = 2e-5});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradTest,
    ::testing::Values(WinogradCase{"even", {1, 32, 16, 16}, 32, {1, 1, 1, 1}},
                      WinogradCase{"odd", {1, 16, 13, 11}, 48, {1, 1, 1, 1}},
                      WinogradCase{"ragged_channels", {1, 33, 9, 10}, 47, {1, 1, 1, 1}},
                      WinogradCase{"batch", {2, 32, 7, 7}, 64, {1, 1, 1, 1}},
                      WinogradCase{"asymmetric", {1, 16, 12, 15}, 16, {0, 2, 1, 0}},
                      WinogradCase{"wide_padding", {2, 16, 5, 6}, 32, {2, 2, 2, 2}},
                      WinogradCase{"unpadded", {1, 16, 11, 14}, 32, {0, 0, 0, 0}},
                      WinogradCase{"one_pixel", {1, 16, 1, 1}, 16, {1, 1, 1, 1}},
                      WinogradCase{"one_row", {1, 32, 1, 30}, 16, {1, 1, 1, 1}},
                      WinogradCase{"wide", {1, 16, 6, 61}, 16, {1, 1, 1, 1}},
                      WinogradCase{"tall", {1, 16, 53, 5}, 32, {1, 1, 1, 1}},
                      WinogradCase{"many_channels", {1, 144, 14, 14}, 80, {1, 1, 1, 1}},
                      WinogradCase{"long_strips", {1, 128, 45, 46}, 64, {1, 1, 1, 1}},
                      WinogradCase{"heavy_weights", {1, 176, 15, 14}, 176, {1, 1, 1, 1}},
                      WinogradCase{"volume", {1, 16, 3, 9, 10}, 32, {1, 1, 1, 1, 1, 1}},
                      WinogradCase{"flat_volume", {2, 32, 1, 7, 7}, 32, {1, 1, 1, 1, 1, 1}},
                      WinogradCase{"two_slices", {1, 16, 2, 8, 8}, 16, {1, 1, 1, 1, 1, 1}},
                      WinogradCase{"deep_padding", {1, 16, 2, 6, 5}, 16, {2, 1, 1, 2, 1, 1}},
                      WinogradCase{"unpadded_volume", {1, 16, 4, 6, 6}, 16, {0, 0, 0, 0, 0, 0}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WinogradRefusals, OtherConvolutionsHaveNoSuchVariant) {
  struct Case {
    Shape data, weight;
    Attrs attrs;
  };
  for (const Case& c :
       {Case{{1, 32, 12, 12}, {32, 32, 3, 3}, {{"strides", Ints{2, 2}}}},
        Case{{1, 32, 12, 12}, {32, 32, 3, 3}, {{"dilation", Ints{2, 2}}}},
        Case{{1, 32, 12, 12}, {32, 32, 5, 5}, {}}, Case{{1, 32, 12, 12}, {32, 32, 1, 3}, {}},
        Case{{1, 32, 12, 12}, {32, 16, 3, 3}, {{"groups", int64_t{2}}}},
        Case{{1, 1, 12, 12}, {32, 1, 3, 3}, {}}, Case{{1, 32, 12, 12}, {1, 32, 3, 3}, {}}}) {
    const Expr x = var("x", c.data);
    const Function f = function({x}, call("nn.conv2d", {x, weights(c.weight)}, c.attrs));
    EXPECT_EQ(winograd_variants(f), 0);
    check_function(f);
  }
}

}  // namespace
}  // namespace collage::native
