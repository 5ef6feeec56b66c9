// Functions that carry roundings far: what honest programs may differ by there, and what they may
// not.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/op.h"
#include "networks.h"
#include "ops/registry.h"
#include "verify/rounding_error.h"

namespace collage {
namespace {

Expr parameter(Shape shape) {
  register_all_ops();
  return make_var("x", TensorType{std::move(shape), DType::kFloat32});
}
Expr rounded_call(const std::string& op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}
Expr number(float value) { return make_constant(Tensor::scalar(value)); }

// The logistic map doubles an error at each step: after enough of them nothing is left of a number,
// and two honest ways to compute it differ altogether.
TEST(ChaoticFunctions, MayGiveAnything) {
  const Expr x = parameter({500});
  const auto iterated = [&](int times) {
    Expr y = rounded_call("sigmoid", {x});
    for (int i = 0; i < times; ++i)
      y = rounded_call("multiply", {rounded_call("multiply", {number(3.999f), y}),
                                    rounded_call("subtract", {number(1), y})});
    return testing::on_trial_data(make_function({x}, y));
  };
  const auto honest = [](const RoundingErrors& errors, int times) {
    Tensor other = errors.expected()[0].clone();
    for (int64_t e = 0; e < other.size(); ++e) {
      float y = 1 / (1 + std::exp(-errors.inputs()[0].data<float>()[e]));
      for (int i = 0; i < times; ++i) y = 3.999f * (y - y * y);
      other.data<float>()[e] = y;
    }
    return other;
  };
  RoundingErrors chaotic = iterated(60);
  EXPECT_TRUE(chaotic.compare(0, honest(chaotic, 60), {}).value().within);
  RoundingErrors tame = iterated(5);
  EXPECT_TRUE(tame.compare(0, honest(tame, 5), {}).value().within);
  EXPECT_FALSE(tame.compare(0, honest(tame, 6), {}).value().within);
}

// y = x (1 + 0.1 gate), where the gate is open or closed by the last places of a sum: most noise
// leaves it as it is, and what roundings of programs do to it moves every element.
TEST(ChaoticFunctions, MayOpenAGateOrNot) {
  const Expr x = parameter({256});
  const auto gated = [&](float threshold) {
    const Expr sum = rounded_call("sum", {rounded_call("multiply", {x, x})}, {{"axis", Ints{0}}});
    const Expr over = rounded_call("subtract", {sum, number(threshold)});
    const Expr gate = rounded_call("sigmoid", {rounded_call("multiply", {over, number(1e6f)})});
    const Expr factor =
        rounded_call("add", {number(1), rounded_call("multiply", {number(0.1f), gate})});
    return make_function({x}, rounded_call("multiply", {x, factor}));
  };
  const Tensor given = testing::on_trial_data(gated(0)).inputs()[0];
  double sum = 0;
  for (int64_t i = 0; i < given.size(); ++i) sum += std::pow(given.element_as_double(i), 2);
  const auto is_accepted = [&](float threshold, float factor) {
    RoundingErrors errors = testing::on_trial_data(gated(threshold));
    Tensor other = errors.expected()[0].clone();
    for (int64_t i = 0; i < other.size(); ++i)
      other.data<float>()[i] = factor * given.data<float>()[i];
    return errors.compare(0, other, {}).value().within;
  };
  // Within two roundings of the sum, and far from it.
  const auto middle = static_cast<float>(sum);
  for (int i = -2; i <= 2; ++i) {
    const auto threshold = middle + static_cast<float>(i) * std::ldexp(middle, -24);
    EXPECT_TRUE(is_accepted(threshold, 1)) << i;
    EXPECT_TRUE(is_accepted(threshold, 1.1f)) << i;
  }
  EXPECT_FALSE(is_accepted(1.01f * middle, 1.1f));
  EXPECT_TRUE(is_accepted(1.01f * middle, 1));
  EXPECT_FALSE(is_accepted(0.99f * middle, 1));
  EXPECT_TRUE(is_accepted(0.99f * middle, 1.1f));
}

}  // namespace
}  // namespace collage
