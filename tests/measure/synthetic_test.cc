#include "verify/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "ops/interpreter.h"
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

TEST(Synthetic, ScalesOfQuantisedTensorsAreSmallAndAboveZero) {
  Expr x = parameter("x", {100}, DType::kFloat32), scale = parameter("s", {}, DType::kFloat32);
  Expr zero = parameter("z", {}, DType::kInt32);
  Function function = make_function({x, scale, zero}, call("qnn.quantize", {x, scale, zero}));
  const float value = *synthetic_inputs(function, 3).value()[1].data<float>();
  EXPECT_GE(value, 0.01f);
  EXPECT_LE(value, 0.1f);
}

TEST(Synthetic, ConstantsThatAreIndicesStayInRange) {
  const auto taken = [](DType dtype, int64_t extent) {
    Expr table = parameter("table", {extent, 3}, DType::kFloat32);
    Expr indices = make_constant(synthetic_constant({{400}, dtype}, 5).value());
    Expr moved = call("reshape", {indices}, {{"newshape", Ints{20, 20}}});
    return make_function({table}, call("take", {table, moved}, {{"axis", int64_t{0}}}));
  };
  for (const auto& [dtype, extent] : std::vector<std::pair<DType, int64_t>>{
           {DType::kInt8, 50}, {DType::kUInt8, 50}, {DType::kInt64, 1}}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Function given = taken(dtype, extent);
    EXPECT_FALSE(interpret(given, synthetic_inputs(given, 3).value()).ok());
    const Function function = with_usable_integers(given).value();
    EXPECT_TRUE(interpret(function, synthetic_inputs(function, 3).value()).ok());
  }
  const Function fits = taken(DType::kUInt8, 256);
  EXPECT_EQ(with_usable_integers(fits).value(), fits);
}

// What is quantised behind a product of quantised tensors is neither mostly zero nor saturated.
TEST(Synthetic, QuantisedWeightsGiveResultsOfManyIntegers) {
  for (const int64_t bits : {8, 7}) {
    Expr x = parameter("x", {16, 256}, DType::kUInt8);
    const auto constant = [](Shape shape, DType dtype) {
      return make_constant(synthetic_constant({std::move(shape), dtype}, 5).value());
    };
    Expr product = call(
        "qnn.dense",
        {x, constant({32, 256}, DType::kInt8), make_scalar<float>(0.03f), make_scalar<int32_t>(128),
         constant({32}, DType::kFloat32), constant({32}, DType::kInt32)},
        {{"weight_bits", bits}});
    Expr result =
        call("qnn.quantize", {product, make_scalar<float>(0.03f), make_scalar<int32_t>(0)});
    Function function = with_quantised_weights(make_function({x}, result)).value();
    const Tensor integers = interpret(function, synthetic_inputs(function, 3).value()).value()[0];
    int64_t ends = 0, zeros = 0;
    for (int8_t value : integers.values<int8_t>()) {
      ends += value == -128 || value == 127;
      zeros += value == 0;
    }
    EXPECT_LT(ends, integers.size() / 10);
    EXPECT_LT(zeros, integers.size() / 10);
    const auto* weights =
        as<ConstantNode>(as<CallNode>(as<CallNode>(function->body)->args[0])->args[1]);
    const auto values = weights->value.values<int8_t>();
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    // Those of 7 bits are mostly small, as trained ones are.
    EXPECT_GE(*least, bits == 7 ? -64 : -128);
    EXPECT_LT(*least, bits == 7 ? -48 : -127);
    EXPECT_GT(*most, bits == 7 ? 48 : 126);
    EXPECT_LE(*most, bits == 7 ? 64 : 127);
    const auto small = std::count_if(values.begin(), values.end(),
                                     [](int8_t value) { return std::abs(value) <= 32; });
    EXPECT_EQ(small > weights->value.size() * 3 / 4, bits == 7);
  }
}

}  // namespace
}  // namespace collage
