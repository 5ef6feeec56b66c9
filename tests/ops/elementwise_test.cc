// Elementwise operators: values known by hand or from <cmath>, broadcasting, and the corners where
// C++ arithmetic would be undefined.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Point {
  const char* op;
  double x, y;
  Attrs attrs = {};
};

TEST(UnaryTest, KnownValues) {
  const std::vector<Point> points = {
      {"nn.relu", -2, 0},
      {"nn.relu", 3, 3},
      {"nn.leaky_relu", -2, -0.02},
      {"nn.leaky_relu", -2, -0.5, {{"alpha", 0.25}}},
      {"clip", 7, 6, {{"a_min", 0.0}, {"a_max", 6.0}}},
      {"clip", -7, 0, {{"a_min", 0.0}, {"a_max", 6.0}}},
      {"sigmoid", 0, 0.5},
      {"sigmoid", 2, 0.8807970779778823},
      {"tanh", 0.5, 0.46211715726000973},
      {"exp", 1, 2.718281828459045},
      {"log", 10, 2.302585092994046},
      {"sqrt", 2, 1.4142135623730951},
      {"rsqrt", 4, 0.5},
      {"erf", 0.5, 0.5204998778130465},
      {"abs", -3, 3},
      {"negative", 3, -3},
      {"ceil", 1.2, 2},
      {"ceil", -1.2, -1},
      {"floor", -1.2, -2},
      {"round", 0.5, 0},
      {"round", 1.5, 2},
      {"round", -2.5, -2},
      {"trunc", -1.7, -1},
      {"sign", -0.1, -1},
      {"sign", 0, 0},
      {"sin", 1, 0.8414709848078965},
      {"cos", 1, 0.5403023058681398},
      {"tan", 1, 1.5574077246549023},
      {"asin", 0.5, 0.5235987755982989},
      {"acos", 0.5, 1.0471975511965979},
      {"atan", 1, 0.7853981633974483},
      {"sinh", 1, 1.1752011936438014},
      {"cosh", 1, 1.5430806348152437},
      {"asinh", 1, 0.881373587019543},
      {"acosh", 2, 1.3169578969248166},
      {"atanh", 0.5, 0.5493061443340549},
      {"reciprocal", 4, 0.25},
      {"nn.gelu", 1, 0.8413447460685429},
      {"nn.gelu", 1, 0.8411919906082768, {{"approximate", std::string("tanh")}}},
      {"nn.silu", 1, 0.7310585786300049},
      {"nn.hard_sigmoid", 1, 0.7},
      {"nn.hard_sigmoid", 9, 1},
      {"nn.hard_swish", 1, 2.0 / 3},
      {"nn.hard_swish", -4, 0},
      {"nn.elu", -1, -0.6321205588285577},
      {"nn.elu", 2, 2},
      {"nn.selu", -1, -1.1113307378125625},
      {"nn.selu", 1, 1.0507009873554805},
      {"nn.celu", -1, -0.7869386805747332, {{"alpha", 2.0}}},
      {"nn.softplus", 0, 0.6931471805599453},
      {"nn.softplus", 100, 100},
      {"nn.softsign", -1, -0.5},
      {"nn.mish", 1, 0.8650983882673103},
      {"nn.thresholded_relu", 0.9, 0},
      {"nn.thresholded_relu", 1.1, 1.1},
      {"nn.shrink", 2, 1.75, {{"lambd", 0.5}, {"bias", 0.25}}},
      {"nn.shrink", 0.25, 0, {{"lambd", 0.5}, {"bias", 0.25}}},
      {"copy", 1.25, 1.25},
  };
  for (const Point& p : points) {
    Tensor y = run(p.op, {floats({}, {static_cast<float>(p.x)})}, p.attrs);
    EXPECT_NEAR(y.data<float>()[0], p.y, 2e-7 * std::max(1.0, std::abs(p.y)))
        << p.op << "(" << p.x << ")";
    Tensor wide = run(p.op, {Tensor::scalar<double>(p.x)}, p.attrs);
    EXPECT_NEAR(wide.data<double>()[0], p.y, 1e-7 * std::max(1.0, std::abs(p.y))) << p.op;
  }
}

TEST(UnaryTest, NanPassesThrough) {
  for (const char* op : {"nn.relu", "sign", "abs", "sigmoid", "nn.leaky_relu", "nn.softplus"})
    EXPECT_TRUE(std::isnan(run(op, {floats({}, {NAN})}).data<float>()[0])) << op;
  EXPECT_TRUE(std::isnan(
      run("clip", {floats({}, {NAN})}, {{"a_min", 0.0}, {"a_max", 1.0}}).data<float>()[0]));
}

TEST(UnaryTest, TestsAndNegations) {
  EXPECT_THAT(run("isnan", {floats({3}, {1, NAN, kInf})}).values<uint8_t>(), ElementsAre(0, 1, 0));
  EXPECT_THAT(run("isinf", {floats({3}, {1, NAN, -kInf})}).values<uint8_t>(), ElementsAre(0, 0, 1));
  EXPECT_THAT(run("logical_not", {bools({2}, {0, 1})}).values<uint8_t>(), ElementsAre(1, 0));
  EXPECT_THAT(run("bitwise_not", {ints({2}, {0, 5})}).values<int64_t>(), ElementsAre(-1, -6));
}

TEST(UnaryTest, IntegerExtremesWrap) {
  const auto least = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(run("abs", {ints({2}, {least, -3})}).values<int64_t>(), ElementsAre(least, 3));
  EXPECT_THAT(run("negative", {ints({1}, {least})}).values<int64_t>(), ElementsAre(least));
  EXPECT_THAT(
      run("clip", {ints({3}, {-9, 3, 9})}, {{"a_min", -1e300}, {"a_max", 5.0}}).values<int64_t>(),
      ElementsAre(-9, 3, 5));
}

TEST(CastTest, TruncatesWrapsAndTests) {
  Tensor x = floats({6}, {1.9f, -1.9f, 3e9f, -3e9f, NAN, 0});
  EXPECT_THAT(run("cast", {x}, {{"dtype", DType::kInt32}}).values<int32_t>(),
              ElementsAre(1, -1, INT32_MIN, INT32_MIN, INT32_MIN, 0));
  EXPECT_THAT(
      run("cast", {floats({6}, {300, -50, 255.9f, 3e9f, kInf, NAN})}, {{"dtype", DType::kUInt8}})
          .values<uint8_t>(),
      ElementsAre(44, 206, 255, 0, 0, 0));
  EXPECT_THAT(run("cast", {x}, {{"dtype", DType::kInt64}}).values<int64_t>(),
              ElementsAre(1, -1, 3000000000, -3000000000, INT64_MIN, 0));
  EXPECT_THAT(run("cast", {floats({4}, {3e9f, 1e19f, 0x1p64f, -2})}, {{"dtype", DType::kUInt64}})
                  .values<uint64_t>(),
              ElementsAre(3000000000u, 9999999980506447872u, uint64_t{1} << 63, ~uint64_t{1}));
  EXPECT_THAT(run("cast", {x}, {{"dtype", DType::kBool}}).values<uint8_t>(),
              ElementsAre(1, 1, 1, 1, 1, 0));
  EXPECT_THAT(run("cast", {ints({2}, {257, -1})}, {{"dtype", DType::kUInt8}}).values<uint8_t>(),
              ElementsAre(1, 255));
  EXPECT_THAT(run("cast", {bools({2}, {0, 1})}, {{"dtype", DType::kFloat32}}).values<float>(),
              ElementsAre(0, 1));
  for (DType half : {DType::kFloat16, DType::kBFloat16}) {
    Tensor there = run("cast", {floats({3}, {1.5f, -0.25f, kInf})}, {{"dtype", half}});
    EXPECT_EQ(there.dtype(), half);
    EXPECT_THAT(run("cast", {there}, {{"dtype", DType::kFloat32}}).values<float>(),
                ElementsAre(1.5f, -0.25f, kInf));
  }
}

TEST(ReinterpretTest, KeepsTheBits) {
  EXPECT_THAT(
      run("reinterpret", {floats({3}, {1, -2, 0})}, {{"dtype", DType::kInt32}}).values<int32_t>(),
      ElementsAre(0x3f800000, static_cast<int32_t>(0xc0000000u), 0));
  EXPECT_THAT(run("reinterpret", {ints({1}, {0x4008000000000000})}, {{"dtype", DType::kFloat64}})
                  .values<double>(),
              ElementsAre(3));
  const Tensor bytes = run("cast", {ints({3}, {0, 1, 7})}, {{"dtype", DType::kUInt8}});
  EXPECT_THAT(run("reinterpret", {bytes}, {{"dtype", DType::kBool}}).values<uint8_t>(),
              ElementsAre(0, 1, 1));
}

TEST(BinaryTest, BroadcastsAsNumpy) {
  for (auto [a, b] : std::vector<std::pair<Shape, Shape>>{{{2, 3, 4}, {2, 3, 4}},
                                                          {{2, 3, 4}, {4}},
                                                          {{2, 1, 4}, {3, 1}},
                                                          {{}, {3, 2}},
                                                          {{5, 1}, {1, 6}},
                                                          {{1, 1, 1}, {7}}}) {
    Tensor x = random(a, 1), y = random(b, 2), z = run("subtract", {x, y});
    for (Index i(z.shape()); i; ++i) {
      auto element = [&](const Tensor& t) {
        Shape index;
        for (size_t d = 0; d < t.shape().size(); ++d)
          index.push_back(t.shape()[d] == 1 ? 0 : i[z.shape().size() - t.shape().size() + d]);
        return at(t, index);
      };
      ASSERT_EQ(z.data<float>()[i.flat()], element(x) - element(y));
    }
  }
}

TEST(BinaryTest, LargeRowsAreSharedRight) {  // beyond the piece size of the row loop
  Tensor x = random({3, 10000}, 1), y = random({10000}, 2), z = run("add", {x, y});
  for (int64_t i = 0; i < z.size(); ++i)
    ASSERT_EQ(z.data<float>()[i], x.data<float>()[i] + y.data<float>()[i % 10000]);
}

TEST(BinaryTest, Arithmetic) {
  Tensor a = ints({4}, {7, -7, 7, -7}), b = ints({4}, {2, 2, -2, -2});
  EXPECT_THAT(run("add", {a, b}).values<int64_t>(), ElementsAre(9, -5, 5, -9));
  EXPECT_THAT(run("multiply", {a, b}).values<int64_t>(), ElementsAre(14, -14, -14, 14));
  EXPECT_THAT(run("divide", {a, b}).values<int64_t>(), ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(run("mod", {a, b}).values<int64_t>(), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(run("floor_mod", {a, b}).values<int64_t>(), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(run("maximum", {a, b}).values<int64_t>(), ElementsAre(7, 2, 7, -2));
  EXPECT_THAT(run("minimum", {a, b}).values<int64_t>(), ElementsAre(2, -7, -2, -7));
  Tensor x = floats({4}, {7, -7, 7, -7}), y = floats({4}, {2, 2, -2, -2});
  EXPECT_THAT(run("divide", {x, y}).values<float>(), ElementsAre(3.5, -3.5, -3.5, 3.5));
  EXPECT_THAT(run("mod", {x, y}).values<float>(), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(run("floor_mod", {x, y}).values<float>(), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(
      run("power", {ints({5}, {2, -3, 1, -1, 5}), ints({5}, {10, 3, -4, -3, 0})}).values<int64_t>(),
      ElementsAre(1024, -27, 1, -1, 1));
  EXPECT_THAT(run("power", {floats({2}, {2, 9}), floats({2}, {-1, 0.5})}).values<float>(),
              ElementsAre(0.5, 3));
  EXPECT_TRUE(std::isnan(run("maximum", {floats({}, {NAN}), floats({}, {1})}).data<float>()[0]));
  EXPECT_TRUE(std::isnan(run("minimum", {floats({}, {1}), floats({}, {NAN})}).data<float>()[0]));
}

TEST(BinaryTest, IntegerExtremesWrap) {
  const int64_t least = std::numeric_limits<int64_t>::min(),
                most = std::numeric_limits<int64_t>::max();
  Tensor a = ints({1}, {least}), minus_one = ints({1}, {-1});
  EXPECT_THAT(run("divide", {a, minus_one}).values<int64_t>(), ElementsAre(least));
  EXPECT_THAT(run("mod", {a, minus_one}).values<int64_t>(), ElementsAre(0));
  EXPECT_THAT(run("floor_mod", {a, minus_one}).values<int64_t>(), ElementsAre(0));
  EXPECT_THAT(run("add", {a, minus_one}).values<int64_t>(), ElementsAre(most));
  EXPECT_THAT(run("multiply", {a, minus_one}).values<int64_t>(), ElementsAre(least));
}

TEST(BinaryTest, DivisionByZeroAndNegativeShiftsAreErrors) {
  Tensor one = ints({2}, {1, 1});
  for (const char* op : {"divide", "mod", "floor_mod"})
    EXPECT_EQ(try_run(op, {one, ints({2}, {1, 0})}).status().code(), ErrorCode::kBadModel) << op;
  for (const char* op : {"left_shift", "right_shift"})
    EXPECT_EQ(try_run(op, {one, ints({2}, {1, -1})}).status().code(), ErrorCode::kBadModel) << op;
  EXPECT_EQ(run("divide", {floats({}, {1}), floats({}, {0})}).data<float>()[0], kInf);
}

TEST(BinaryTest, BitsAndShifts) {
  Tensor a = ints({3}, {12, -8, 1}), b = ints({3}, {10, 1, 64});
  EXPECT_THAT(run("bitwise_and", {a, b}).values<int64_t>(), ElementsAre(8, 0, 0));
  EXPECT_THAT(run("bitwise_or", {a, b}).values<int64_t>(), ElementsAre(14, -7, 65));
  EXPECT_THAT(run("bitwise_xor", {a, b}).values<int64_t>(), ElementsAre(6, -7, 65));
  EXPECT_THAT(run("left_shift", {a, b}).values<int64_t>(), ElementsAre(12288, -16, 0));
  EXPECT_THAT(run("right_shift", {a, b}).values<int64_t>(), ElementsAre(0, -4, 0));
}

TEST(BinaryTest, ComparisonsAndLogic) {
  Tensor a = floats({3}, {1, 2, NAN}), b = floats({3}, {2, 2, NAN});
  EXPECT_THAT(run("equal", {a, b}).values<uint8_t>(), ElementsAre(0, 1, 0));
  EXPECT_THAT(run("not_equal", {a, b}).values<uint8_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(run("less", {a, b}).values<uint8_t>(), ElementsAre(1, 0, 0));
  EXPECT_THAT(run("less_equal", {a, b}).values<uint8_t>(), ElementsAre(1, 1, 0));
  EXPECT_THAT(run("greater", {b, a}).values<uint8_t>(), ElementsAre(1, 0, 0));
  EXPECT_THAT(run("greater_equal", {b, a}).values<uint8_t>(), ElementsAre(1, 1, 0));
  Tensor p = bools({4}, {0, 0, 1, 1}), q = bools({4}, {0, 1, 0, 1});
  EXPECT_THAT(run("logical_and", {p, q}).values<uint8_t>(), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(run("logical_or", {p, q}).values<uint8_t>(), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(run("logical_xor", {p, q}).values<uint8_t>(), ElementsAre(0, 1, 1, 0));
}

TEST(SelectTest, WhereAndPrelu) {
  Tensor y = run("where", {bools({2, 1}, {1, 0}), floats({2}, {1, 2}), floats({}, {9})});
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(y.values<float>(), ElementsAre(1, 2, 9, 9));
  EXPECT_THAT(run("nn.prelu", {floats({1, 2, 2}, {-1, 1, -2, 2}), floats({2}, {0.5, 0.25})})
                  .values<float>(),
              ElementsAre(-0.5, 1, -0.5, 2));
}

// Any two numbers, those near each other besides: quotients within and beyond what mod computes
// itself.
TEST(BinaryTest, ModIsExactlyThatOfTheLibrary) {
  std::mt19937 random(5);
  std::vector<float> values, divisors;
  for (int i = 0; i < 200000; ++i) {
    const uint32_t a = random();
    uint32_t b = random();
    if (i % 2 == 0) b = (b & 0x807fffff) | ((a & 0x7f800000) - ((b & 31) << 23));
    values.push_back(std::bit_cast<float>(a));
    divisors.push_back(std::bit_cast<float>(b));
  }
  for (const float special : {0.0f, -0.0f, 1.0f, kInf, -kInf, 0x1p-149f, 0x1.fffffep127f})
    for (const float other : {0.0f, -0.0f, 3.0f, kInf, 0x1p-149f, 0x1.fffffep127f}) {
      values.push_back(special);
      divisors.push_back(other);
    }
  const auto count = static_cast<int64_t>(values.size());
  const Tensor result = run("mod", {floats({count}, values), floats({count}, divisors)});
  for (size_t i = 0; i < values.size(); ++i) {
    const float expected = std::fmod(values[i], divisors[i]), actual = result.data<float>()[i];
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << values[i] << " mod " << divisors[i];
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(expected))
          << values[i] << " mod " << divisors[i];
    }
  }
}

}  // namespace
}  // namespace collage
