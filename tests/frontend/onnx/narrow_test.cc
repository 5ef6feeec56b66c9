// Element types that are narrower than any of ours: every value of a type is read from its bits,
// stays what it is when it is rounded to, and the middle of two goes to the even one.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/model_builder.h"
#include "frontend/onnx/narrow_types.h"

namespace collage {
namespace {

using frontend::NarrowType;
using ::onnx::TensorProto;

Tensor cast(const Tensor& x, int32_t to, bool saturate, const std::string& round_mode = "") {
  ModelBuilder m(24);
  m.input("x", {std::to_string(x.size())});
  NodeBuilder node = m.node("Cast", {"x"}, {"y"}).integer("to", to);
  node.integer("saturate", saturate ? 1 : 0);
  if (!round_mode.empty()) node.text("round_mode", round_mode);
  m.output("y", to);
  return m.run({x})[0];
}

Tensor cast(const std::vector<float>& values, int32_t to, bool saturate = true,
            const std::string& round_mode = "") {
  return cast(floats({static_cast<int64_t>(values.size())}, values), to, saturate, round_mode);
}

class NarrowFloats : public ::testing::TestWithParam<int32_t> {};

// By growing bits: from 0 on for positive numbers.
std::vector<float> positive_numbers(const NarrowType& type) {
  std::vector<float> numbers;
  for (unsigned bits = 0; bits < 1U << (type.bits - 1); ++bits)
    if (const float value = frontend::narrow_float(type, bits); std::isfinite(value))
      numbers.push_back(value);
  return numbers;
}

TEST_P(NarrowFloats, AreOrderedAndEndWithTheLargest) {
  const NarrowType& type = *frontend::narrow_type(GetParam());
  const std::vector<float> numbers = positive_numbers(type);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_EQ(numbers.front(), 0);
  EXPECT_EQ(numbers.back(), type.largest);
  EXPECT_EQ(numbers[1], std::ldexp(1.0F, type.least_exponent - type.mantissa));
}

TEST_P(NarrowFloats, AreRoundedToTheNearestAndTiesToEven) {
  const NarrowType& type = *frontend::narrow_type(GetParam());
  const std::vector<float> numbers = positive_numbers(type);
  std::vector<float> values, expected;
  const auto add = [&](float value, float wanted) {
    values.insert(values.end(), {value, -value});
    expected.insert(expected.end(), {wanted, -wanted});
  };
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const float low = numbers[i], high = numbers[i + 1], middle = low + (high - low) / 2;
    add(low, low);
    add(middle, i % 2 == 0 ? low : high);
    add(std::nextafter(middle, 0.0F), low);
    add(std::nextafter(middle, INFINITY), high);
  }
  for (bool saturate : {true, false}) {
    const Tensor made = cast(values, GetParam(), saturate);
    ASSERT_EQ(made.dtype(), DType::kFloat32);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(made.data<float>()[i], expected[i]) << values[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowFloats,
                         ::testing::Values(TensorProto::FLOAT4E2M1, TensorProto::FLOAT8E4M3FN,
                                           TensorProto::FLOAT8E4M3FNUZ, TensorProto::FLOAT8E5M2,
                                           TensorProto::FLOAT8E5M2FNUZ),
                         [](const auto& info) {
                           return ::onnx::TensorProto_DataType_Name(
                               static_cast<TensorProto::DataType>(info.param));
                         });

TEST(Narrow, BitsThatAreNoNumbers) {
  const auto value = [](int32_t type, unsigned bits) {
    return frontend::narrow_float(*frontend::narrow_type(type), bits);
  };
  EXPECT_TRUE(std::isnan(value(TensorProto::FLOAT8E4M3FN, 0x7f)));
  EXPECT_TRUE(std::isnan(value(TensorProto::FLOAT8E4M3FN, 0xff)));
  EXPECT_EQ(value(TensorProto::FLOAT8E4M3FN, 0x80), 0);
  EXPECT_TRUE(std::isnan(value(TensorProto::FLOAT8E4M3FNUZ, 0x80)));
  EXPECT_EQ(value(TensorProto::FLOAT8E4M3FNUZ, 0xff), -240);
  EXPECT_EQ(value(TensorProto::FLOAT8E5M2, 0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(value(TensorProto::FLOAT8E5M2, 0x7d)));
  EXPECT_TRUE(std::isnan(value(TensorProto::FLOAT8E5M2FNUZ, 0x80)));
  EXPECT_TRUE(std::isnan(value(TensorProto::FLOAT8E8M0, 0xff)));
  EXPECT_EQ(value(TensorProto::FLOAT8E8M0, 0), 0x1p-127F);
}

// What is beyond the largest number, and NaN.
TEST(Narrow, OverflowsAreTheLargestOrWhatTheTypeHasForThem) {
  const std::vector<float> values = {1e9F, -1e9F, INFINITY, NAN};
  const auto expect = [&](int32_t type, bool saturate, const std::vector<float>& wanted) {
    const Tensor made = cast(values, type, saturate);
    for (size_t i = 0; i < values.size(); ++i) {
      const float got = made.data<float>()[i];
      EXPECT_TRUE(got == wanted[i] || (std::isnan(got) && std::isnan(wanted[i])))
          << type << " " << values[i] << " became " << got;
    }
  };
  expect(TensorProto::FLOAT8E4M3FN, true, {448, -448, 448, NAN});
  expect(TensorProto::FLOAT8E4M3FN, false, {NAN, NAN, NAN, NAN});
  expect(TensorProto::FLOAT8E5M2, true, {57344, -57344, 57344, NAN});
  expect(TensorProto::FLOAT8E5M2, false, {INFINITY, -INFINITY, INFINITY, NAN});
  expect(TensorProto::FLOAT8E5M2FNUZ, false, {NAN, NAN, NAN, NAN});
  expect(TensorProto::FLOAT4E2M1, true, {6, -6, 6, 0});
}

TEST(Narrow, PowersOfTwoAreRoundedAsTheAttributeSays) {
  const std::vector<float> values = {0.3F, 0.25F, -0.3F, 3, 0};
  const auto expect = [&](const std::string& mode, const std::vector<float>& wanted) {
    const Tensor made = cast(values, TensorProto::FLOAT8E8M0, true, mode);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(made.data<float>()[i], wanted[i]) << mode << " " << values[i];
  };
  expect("up", {0.5F, 0.25F, 0.5F, 4, 0x1p-127F});
  expect("down", {0.25F, 0.25F, 0.25F, 2, 0x1p-127F});
  expect("nearest", {0.25F, 0.25F, 0.25F, 4, 0x1p-127F});
}

TEST(Narrow, IntegersKeepTheirLowBits) {
  const Tensor two = cast({-3, -2, 1, 2, 3.9F}, TensorProto::INT2);
  EXPECT_EQ(two.dtype(), DType::kInt8);
  expect_values(two, {5}, {1, -2, 1, -2, -1});
  const Tensor four = cast({-1, 15, 16, 17.5F}, TensorProto::UINT4);
  EXPECT_EQ(four.dtype(), DType::kUInt8);
  expect_values(four, {4}, {15, 15, 0, 1});
}

TEST(Narrow, TypesGoThroughWhatOnlyMovesElements) {
  ModelBuilder m(24);
  m.input("x", {"2", "2"}, TensorProto::INT4).constant("s", floats({}, {0.5F}));
  m.node("Transpose", {"x"}, {"t"});
  m.node("CastLike", {"s", "t"}, {"c"});
  m.node("Cast", {"t"}, {"y"}).integer("to", TensorProto::FLOAT);
  m.output("t", TensorProto::INT4).output("c", TensorProto::INT4).output("y");
  const std::vector<Tensor> made = m.run({Tensor::from<int8_t>({2, 2}, {1, -2, 3, -4})});
  expect_values(made[0], {2, 2}, {1, 3, -2, -4});
  expect_values(made[1], {}, {0});
  expect_values(made[2], {2, 2}, {1, 3, -2, -4});
}

TEST(Narrow, ArithmeticOnThemIsRefused) {
  ModelBuilder m(24);
  m.input("x", {"2"}, TensorProto::FLOAT8E5M2);
  m.node("Add", {"x", "x"}, {"y"}).name("sum");
  m.output("y");
  expect_error(m.import(), ErrorCode::kUnsupported,
               "node 'sum' (Add): an input of type FLOAT8E5M2");
}

TEST(Narrow, OutputsMustBeOfTheDeclaredOne) {
  ModelBuilder m(24);
  m.input("x", {"2"}, TensorProto::FLOAT8E5M2);
  m.node("Identity", {"x"}, {"y"});
  m.output("y", TensorProto::FLOAT8E4M3FN);
  expect_error(m.import(), ErrorCode::kBadModel, "output 'y' is declared as FLOAT8E4M3FN");
}

}  // namespace
}  // namespace collage
