// 16-bit integers: sums that would overflow, numbers of very different size, and what is no number.
#include <cmath>
#include <limits>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

struct Ran {
  Tensor result, expected;
  std::string variant;
  bool is(const char* word) const { return variant.find(word) != std::string::npos; }
};

// What each variant gives, beside the reference.
std::vector<Ran> run_vnni(const Function& function, const std::vector<Tensor>& inputs) {
  const Target target{"vnni", {}, {}};
  const auto variants = vnni_backend().lowered_variants(function, target, {1, ""});
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  std::vector<Ran> runs;
  for (const Variant& variant : *variants) {
    const auto kernel = vnni_backend().compile(function, variant, target, {1, ""});
    EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
    runs.push_back({run_guarded(**kernel, function, variant, inputs)[0],
                    evaluate(function, inputs)[0], variant.name});
  }
  return runs;
}

// An image, and its convolution with 3x3 taps.
Function convolution(Graph& graph, const Shape& image, const Tensor& weights) {
  return graph.function(graph.call("nn.conv2d", {graph.input(image), make_constant(weights, "w")},
                                   {{"padding", Ints{1, 1, 1, 1}}}));
}

// The pixels of an image that is a row of them, each multiplied by a matrix.
Function of_pixels(Graph& graph, int64_t pixels, const Tensor& weights) {
  const Expr image = graph.input({1, weights.shape()[1], 1, pixels});
  return graph.function(graph.call("nn.conv2d", {image, make_constant(weights, "w")}));
}
Tensor random_weights(Graph& graph, int64_t outputs, int64_t inputs, double scale) {
  return as<ConstantNode>(graph.constant({outputs, inputs, 1, 1}, scale))->value;
}

// The root of the mean of squared errors, as a part of that of the results.
double relative_error(const Ran& ran) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < ran.expected.size(); ++i) {
    const double expected = static_cast<double>(ran.expected.data<float>()[i]);
    error += std::pow(static_cast<double>(ran.result.data<float>()[i]) - expected, 2);
    size += expected * expected;
  }
  return std::sqrt(error / size);
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::zeros(DType::kFloat32, shape);
  std::fill_n(tensor.data<float>(), tensor.size(), value);
  return tensor;
}

// Every product is the largest there is: sums have to go to float32 after each step.
TEST_F(DotProducts, TheLargestSumsDoNotOverflow) {
  for (const float sign : {1.0f, -1.0f}) {
    Graph graph;
    const Function function = of_pixels(graph, 20, filled({48, 1000, 1, 1}, sign * 3));
    for (const Ran& ran : run_vnni(function, {filled({1, 1000, 1, 20}, 0.7f)}))
      for (int64_t i = 0; i < ran.result.size(); ++i)
        ASSERT_NEAR(ran.result.data<float>()[i], sign * 2100,
                    ran.is("coarse") ? 2100 / 2047.0 : 0.01);
  }
}

TEST_F(DotProducts, TheLargestSumsOfAConvolutionDoNotOverflow) {
  Graph graph;
  const Function function = convolution(graph, {1, 1000, 6, 6}, filled({32, 1000, 3, 3}, -2));
  const std::vector<Ran> runs = run_vnni(function, {filled({1, 1000, 6, 6}, 0.7f)});
  EXPECT_EQ(runs.size(), 4u);  // Winograd's algorithm is two of them
  for (const Ran& ran : runs)
    EXPECT_LT(relative_error(ran), ran.is("coarse") || ran.is("winograd") ? 6e-4 : 1e-4)
        << ran.variant;
}

// Fewer than a tile has, and than the matrix unit takes.
TEST_F(DotProducts, FewRows) {
  for (int64_t rows = 1; rows < 8; ++rows) {
    Graph graph;
    const Function function = of_pixels(graph, rows, random_weights(graph, 300, 200, 0.3));
    const std::vector<Ran> runs = run_vnni(function, random_inputs(function));
    EXPECT_EQ(runs.size(), 2u);
    for (const Ran& ran : runs)
      EXPECT_LT(relative_error(ran), ran.is("coarse") ? 8e-4 : 4e-4) << rows;
  }
}

// bfloat16 errs by some 2e-3 on the same numbers.
TEST_F(DotProducts, ErrAFifthOfBfloat16) {
  Graph graph;
  const Function function = of_pixels(graph, 64, random_weights(graph, 96, 512, 0.3));
  for (const Ran& ran : run_vnni(function, random_inputs(function))) {
    const double error = relative_error(ran);
    EXPECT_LT(error, ran.is("coarse") ? 8e-4 : 4e-4);
    EXPECT_GT(error, 1e-6);  // it does round
  }
}

TEST_F(DotProducts, ErrAThirdOfBfloat16InConvolutionsOrHalfOfItByFourByFour) {
  Graph graph;
  const Tensor weights = as<ConstantNode>(graph.constant({48, 80, 3, 3}, 0.3))->value;
  const Function function = convolution(graph, {1, 80, 15, 13}, weights);
  for (const Ran& ran : run_vnni(function, random_inputs(function))) {
    const double error = relative_error(ran);
    EXPECT_LT(error, ran.is("winograd4") ? 1.5e-3 : ran.is("coarse") ? 9e-4 : 6e-4);
    EXPECT_GT(error, 1e-6);
  }
}

// Each column has a unit of its own, and so has the image.
TEST_F(DotProducts, ColumnsOfVeryDifferentSize) {
  Graph graph;
  Tensor weights = random_weights(graph, 40, 64, 1).clone();
  for (int64_t n = 0; n < 40; ++n)
    for (int64_t k = 0; k < 64; ++k)
      weights.data<float>()[n * 64 + k] *= std::pow(10.0f, static_cast<float>(n) / 2 - 10);
  const Function function = of_pixels(graph, 32, weights);
  std::vector<Tensor> inputs = random_inputs(function);
  for (int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].data<float>()[i] *= 1e-12f;
  const Ran ran = run_vnni(function, inputs).at(0);
  for (int64_t n = 0; n < 40; ++n) {
    double error = 0, size = 0;
    for (int64_t r = 0; r < 32; ++r) {
      const double expected = static_cast<double>(ran.expected.data<float>()[n * 32 + r]);
      error += std::pow(static_cast<double>(ran.result.data<float>()[n * 32 + r]) - expected, 2);
      size += expected * expected;
    }
    EXPECT_LT(std::sqrt(error / size), 1e-3) << n;
  }
}

// Whose results are copied along with it, nobody's are silently wrong.
TEST_F(DotProducts, WhatIsNoNumberMakesNaN) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Graph graph;
    const Tensor weights = as<ConstantNode>(graph.constant({16, 16, 3, 3}, 0.1))->value;
    const Function function = convolution(graph, {1, 16, 8, 8}, weights);
    std::vector<Tensor> inputs = random_inputs(function);
    inputs[0].data<float>()[5] = value;
    for (const Ran& ran : run_vnni(function, inputs))
      for (int64_t i = 0; i < ran.result.size(); ++i)
        ASSERT_TRUE(std::isnan(ran.result.data<float>()[i]));
  }
}

TEST_F(DotProducts, ZerosGiveZeros) {
  Graph graph;
  const Function function = of_pixels(graph, 9, random_weights(graph, 16, 32, 1));
  const Ran ran = run_vnni(function, {Tensor::zeros(DType::kFloat32, {1, 32, 1, 9})}).at(0);
  for (int64_t i = 0; i < ran.result.size(); ++i) ASSERT_EQ(ran.result.data<float>()[i], 0);
}

}  // namespace
}  // namespace collage::testing
