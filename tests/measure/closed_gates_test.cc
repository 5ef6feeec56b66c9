// What an element may err by that a gate lets hardly through.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/random_inputs.h"
#include "ops/registry.h"
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

}  // namespace
}  // namespace collage
