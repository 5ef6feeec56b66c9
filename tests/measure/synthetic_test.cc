#include "verify/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planted_kernel.h"

namespace collage {
namespace {

Expr parameter(const std::string& name, Shape shape, DType dtype) {
  register_all_ops();
  return make_var(name, TensorType{std::move(shape), dtype});
}
Expr call(const std::string& op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}

std::pair<int64_t, int64_t> extremes(const Tensor& tensor) {
  auto [low, high] =
      std::minmax_element(tensor.values<int64_t>().begin(), tensor.values<int64_t>().end());
  return {*low, *high};
}

TEST(Synthetic, IndicesStayInRangeThroughOtherOperators) {
  Expr table = parameter("table", {50, 3}, DType::kFloat32);
  Expr indices = parameter("indices", {400}, DType::kInt64);
  Expr moved = call("reshape", {indices}, {{"newshape", Ints{20, 20}}});
  Function function =
      make_function({table, indices}, call("take", {table, moved}, {{"axis", int64_t{0}}}));
  auto [low, high] = extremes(synthetic_inputs(function, 3).value()[1]);
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 50);
  EXPECT_GT(high, 40) << "all of the table is read";
}

TEST(Synthetic, DivisorsAreNotZero) {
  Expr a = parameter("a", {400}, DType::kInt64), b = parameter("b", {400}, DType::kInt64);
  Function function = make_function({a, b}, call("divide", {a, b}));
  EXPECT_GE(extremes(synthetic_inputs(function, 3).value()[1]).first, 1);
}

TEST(Synthetic, RealNumbersFillTheRangeAsked) {
  Function function = testing::unary("nn.relu", {1000});
  Tensor input = synthetic_inputs(function, 3, {2, 4}).value()[0];
  auto [low, high] =
      std::minmax_element(input.values<float>().begin(), input.values<float>().end());
  EXPECT_GE(*low, 2.0f);
  EXPECT_LE(*high, 4.0f);
  EXPECT_GT(*high - *low, 1.9f);
}

}  // namespace
}  // namespace collage
