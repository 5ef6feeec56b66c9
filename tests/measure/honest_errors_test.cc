// Elements that honest kernels err in, and that were refused for it once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ops/random_inputs.h"
#include "ops/registry.h"
#include "verify/magnitudes.h"
#include "verify/rounding_error.h"

namespace collage {
namespace {

// An update gate of 1 - 2e-6, in float32 one of 35 numbers there, lets that little of the candidate
// through.
TEST(RoundingErrors, OfANearlyClosedGateAreThoseOfTheGate) {
  constexpr int64_t kHidden = 16;
  const auto drawn = [](Shape shape, uint64_t seed) {
    return random_tensor({std::move(shape), DType::kFloat32}, seed);
  };
  Tensor bias = Tensor::zeros(DType::kFloat32, {1, 6 * kHidden});
  std::fill_n(bias.data<float>(), kHidden, 13.0f);
  register_all_ops();
  const Expr data = make_var("x", TensorType{{1, 1, 4}, DType::kFloat32});
  const Expr layer =
      make_call("nn.gru", {data, make_constant(drawn({1, 3 * kHidden, 4}, 1)),
                           make_constant(drawn({1, 3 * kHidden, kHidden}, 2)), make_constant(bias),
                           make_constant(Tensor::from<int32_t>({1}, {1})),
                           make_constant(Tensor::zeros(DType::kFloat32, {1, 1, kHidden}))})
          .value();
  const Function function = make_function({data}, make_tuple_get_item(layer, 0).value());
  RoundingErrors errors = RoundingErrors::of(function, {drawn({1, 1, 4}, 3)}).value();
  const auto within = [&](float error) {
    Tensor actual = errors.expected()[0].clone();
    for (int64_t i = 0; i < kHidden; ++i) {
      EXPECT_LT(std::abs(actual.data<float>()[i]), 1e-4);
      actual.data<float>()[i] += i % 2 == 0 ? error : -error;
    }
    return errors.compare(0, actual, {}).value().within;
  };
  EXPECT_TRUE(within(6e-8f));
  EXPECT_FALSE(within(1e-5f));
}

Function product_of(int64_t rows, int64_t depth, int64_t columns, const Tensor& weights) {
  register_all_ops();
  const Expr data = make_var("x", TensorType{{rows, depth}, DType::kFloat32});
  EXPECT_EQ(weights.shape(), (Shape{columns, depth}));
  return make_function({data}, make_call("nn.dense", {data, make_constant(weights)}).value());
}

// Of 40,000 elements one may exceed what it may err by, a little; not four times, and not many.
TEST(RoundingErrors, OfManyElementsTheLargestIsBeyondThatOfFew) {
  constexpr int64_t kSide = 200, kDepth = 96;
  const auto drawn = [](uint64_t seed) {
    return random_tensor({{kSide, kDepth}, DType::kFloat32}, seed);
  };
  RoundingErrors errors =
      RoundingErrors::of(product_of(kSide, kDepth, kSide, drawn(1)), {drawn(2)}).value();
  const Tensor& expected = errors.expected()[0];
  ASSERT_EQ(errors.compare(0, expected, {}).value().wrong, 0);
  const Magnitudes magnitudes(expected);
  const auto within = [&](double times, int64_t every) {
    const Tolerance tolerance = errors.tolerances({}).value()[0];
    Tensor actual = expected.clone();
    float* data = actual.data<float>();
    for (int64_t i = 0; i < expected.size(); i += every) {
      const double value = static_cast<double>(data[i]);
      const double allowed = tolerance.of_scale * magnitudes.scale(value) +
                             tolerance.relative * std::abs(value) +
                             tolerance.of_moved * (*tolerance.moved)[static_cast<size_t>(i)];
      data[i] += static_cast<float>(times * allowed);
    }
    const Difference difference = errors.compare(0, actual, {}).value();
    EXPECT_EQ(difference.within, difference.reason.empty());
    return difference.within;
  };
  within(4, expected.size());  // draws all noise that there is
  EXPECT_TRUE(within(1.3, expected.size()));
  EXPECT_FALSE(within(4, expected.size()));
  EXPECT_FALSE(within(1.3, 1000));
}

// Each product may be taken for zero, not what one operation gives.
TEST(RoundingErrors, OfSumsOfDenormalProductsAreAllOfThem) {
  constexpr int64_t kDepth = 192;
  const auto full = [](Shape shape, float value) {
    Tensor tensor = Tensor::zeros(DType::kFloat32, std::move(shape));
    std::fill_n(tensor.data<float>(), tensor.size(), value);
    return tensor;
  };
  const auto takes_zero = [&](const Function& function, const Tensor& input) {
    RoundingErrors errors = RoundingErrors::of(function, {input}).value();
    const Tensor& expected = errors.expected()[0];
    EXPECT_GT(expected.data<float>()[0], 1.2e-38f);  // a normal number
    return errors.compare_at_ends(0, Tensor::zeros(DType::kFloat32, expected.shape()), {})
        .value()
        .within;
  };
  EXPECT_TRUE(
      takes_zero(product_of(2, kDepth, 2, full({2, kDepth}, 4e-19f)), full({2, kDepth}, 1e-20f)));
  const Expr x = make_var("x", TensorType{{8}, DType::kFloat32});
  EXPECT_FALSE(takes_zero(
      make_function({x}, make_call("multiply", {x, make_constant(full({}, 77.0f))}).value()),
      full({8}, 1e-38f)));
}

}  // namespace
}  // namespace collage
