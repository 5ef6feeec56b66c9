// Operators of quantised models against values worked out by hand, and what their types refuse.
#include <cmath>
#include <limits>

#include "op_test.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor bytes(Shape shape, const std::vector<int8_t>& values) {
  return Tensor::from<int8_t>(std::move(shape), values);
}
Tensor unsigned_bytes(Shape shape, const std::vector<uint8_t>& values) {
  return Tensor::from<uint8_t>(std::move(shape), values);
}
Tensor int32s(Shape shape, const std::vector<int32_t>& values) {
  return Tensor::from<int32_t>(std::move(shape), values);
}
Tensor scale(float value) { return Tensor::scalar<float>(value); }
Tensor zero(int32_t value) { return Tensor::scalar<int32_t>(value); }
Attrs to(const char* dtype) { return {{"out_dtype", std::string(dtype)}}; }

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Quantised, HalvesGoToTheEvenInteger) {
  const Tensor x = floats({6}, {0.25f, 0.75f, 1.25f, -0.25f, -0.75f, 0.3f});
  EXPECT_THAT(values_of<int8_t>(run("qnn.quantize", {x, scale(0.5f), zero(0)})),
              ElementsAre(0, 2, 2, 0, -2, 1));
  // The zero point is added after rounding.
  EXPECT_THAT(values_of<int8_t>(run("qnn.quantize", {x, scale(0.5f), zero(1)})),
              ElementsAre(1, 3, 3, 1, -1, 2));
}

TEST(Quantised, WhatIsOutOfRangeSaturates) {
  const Tensor x = floats({5}, {1e30f, -1e30f, kInfinity, -kInfinity, 10.0f});
  EXPECT_THAT(values_of<int8_t>(run("qnn.quantize", {x, scale(0.1f), zero(5)})),
              ElementsAre(127, -128, 127, -128, 105));
  EXPECT_THAT(values_of<uint8_t>(run("qnn.quantize", {x, scale(0.1f), zero(200)}, to("uint8"))),
              ElementsAre(255, 0, 255, 0, 255));
  EXPECT_THAT(values_of<int16_t>(run("qnn.quantize", {x, scale(0.1f), zero(0)}, to("int16"))),
              ElementsAre(32767, -32768, 32767, -32768, 100));
  EXPECT_THAT(values_of<uint16_t>(run("qnn.quantize", {x, scale(0.1f), zero(0)}, to("uint16"))),
              ElementsAre(65535, 0, 65535, 0, 100));
  EXPECT_THAT(
      values_of<int32_t>(run("qnn.quantize", {x, scale(0.1f), zero(7)}, to("int32"))),
      ElementsAre(std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min(),
                  std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min(), 107));
}

TEST(Quantised, NoNumberIsTheZeroPoint) {
  const Tensor x = floats({2}, {std::nanf(""), 0.0f});
  EXPECT_THAT(values_of<uint8_t>(run("qnn.quantize", {x, scale(0.1f), zero(9)}, to("uint8"))),
              ElementsAre(9, 9));
  EXPECT_THAT(values_of<int8_t>(run("qnn.quantize", {x, scale(0.0f), zero(1000)})),
              ElementsAre(127, 127));
}

TEST(Quantised, ScalesLieAlongAnAxis) {
  const Tensor x = floats({2, 3}, {1, 1, 1, 2, 2, 2});
  const Tensor scales = floats({3}, {1, 0.5f, 0.25f}), zeros = int32s({3}, {0, 1, -1});
  EXPECT_THAT(values_of<int8_t>(run("qnn.quantize", {x, scales, zeros})),
              ElementsAre(1, 3, 3, 2, 5, 7));
  const Tensor q = bytes({2, 3}, {1, 3, 3, 2, 5, 7});
  EXPECT_THAT(floats_of(run("qnn.dequantize", {q, scales, zeros})), ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(floats_of(run("qnn.dequantize", {q, floats({2}, {1, 10}), int32s({2}, {1, 0})},
                            {{"axis", int64_t{0}}})),
              ElementsAre(0, 2, 2, 20, 50, 70));
}

TEST(Quantised, DifferencesOfLargeIntegersDoNotWrap) {
  const Tensor q = int32s({2}, {std::numeric_limits<int32_t>::min(), 5});
  const Tensor x = run("qnn.dequantize", {q, scale(1), zero(std::numeric_limits<int32_t>::max())});
  EXPECT_EQ(floats_of(x)[0], -0x1p32f);
}

TEST(Quantised, PaddingOfConvolutionsIsZeroNotTheZeroPoint) {
  // (3 - 2) and (5 - 2), with weights (4 - 1) in the middle of three.
  const Tensor x = unsigned_bytes({1, 1, 2}, {3, 5});
  const Tensor w = bytes({1, 1, 3}, {2, 4, 0});
  const Tensor y =
      run("qnn.conv1d", {x, w, scale(0.5f), zero(2), floats({1}, {0.25f}), int32s({1}, {1})},
          {{"padding", Ints{1, 1}}});
  // weights 1, 3, -1; sums 1·3 - 3·1 = 0 and 1·1 + 3·3 = 10.
  EXPECT_THAT(floats_of(y), ElementsAre(0, 1.25f));
}

TEST(Quantised, EveryOutputChannelHasItsScaleAndZeroPoint) {
  const Tensor x = bytes({1, 2}, {10, -10});
  const Tensor w = bytes({2, 2}, {1, 0, 5, 7});
  const Tensor y =
      run("qnn.dense", {x, w, scale(1), zero(0), floats({2}, {1, 2}), int32s({2}, {0, 5})});
  EXPECT_THAT(floats_of(y), ElementsAre(10, -40));
  const Tensor turned = run("qnn.matmul", {x, bytes({2, 2}, {1, 5, 0, 7}), scale(1), zero(0),
                                           floats({2}, {1, 2}), int32s({2}, {0, 5})});
  EXPECT_THAT(floats_of(turned), ElementsAre(10, -40));
}

TEST(Quantised, SumsBeyondTheDigitsOfFloatAreExact) {
  constexpr int64_t kDepth = 4096;
  Tensor x = Tensor::zeros(DType::kUInt8, {1, kDepth}),
         w = Tensor::zeros(DType::kInt8, {1, kDepth});
  int64_t sum = 0;
  for (int64_t i = 0; i < kDepth; ++i) {
    x.data<uint8_t>()[i] = 255;
    w.data<int8_t>()[i] = static_cast<int8_t>(127 - i % 3);
    sum += 255 * (127 - i % 3);
  }
  ASSERT_GT(sum, int64_t{1} << 24);
  const Tensor y = run("qnn.dense", {x, w, scale(1), zero(0), scale(1), zero(0)});
  EXPECT_EQ(floats_of(y)[0], static_cast<float>(sum));
}

TEST(Quantised, InputsOfFunctionsAreOfAllIntegersAndScalesAreSmall) {
  register_all_ops();
  Expr data = make_var("x", TensorType{{64, 64}, DType::kUInt8});
  Expr by = make_var("scale", TensorType{{}, DType::kFloat32});
  Expr middle = make_var("zero", TensorType{{}, DType::kInt32});
  Expr flat = *make_call("reshape", {data}, {{"newshape", Ints{4096}}});
  Function f = make_function({data, by, middle}, *make_call("qnn.dequantize", {flat, by, middle}));
  const std::vector<ValueRange> ranges = input_ranges(f);
  EXPECT_EQ(ranges[0].low, 0);
  EXPECT_EQ(ranges[0].high, 255);
  EXPECT_GT(ranges[1].low, 0);
  EXPECT_LE(ranges[1].high, 0.1);
  EXPECT_GT(ranges[2].low, 0);
  EXPECT_LT(ranges[2].high, 255);
}

struct Refusal {
  std::string op;
  std::vector<TensorType> types;
  Attrs attrs;
  std::string message;
};

TEST(Quantised, WhatTypesRefuse) {
  using enum DType;
  const TensorType one = {{}, kFloat32}, none = {{}, kInt32};
  const TensorType scales = {{4}, kFloat32}, zeros = {{4}, kInt32};
  const TensorType data = {{2, 4}, kUInt8}, weight = {{4, 4}, kInt8};
  const std::vector<Refusal> refusals = {
      {"qnn.quantize", {{{4}, kFloat64}, one, none}, {}, "data must be float32, not float64"},
      {"qnn.quantize", {scales, one, none}, to("float32"), "not float32"},
      {"qnn.quantize", {scales, one, none}, to("int64"), "not int64"},
      {"qnn.quantize", {scales, one, none}, to("colour"), "out_dtype 'colour' is not known"},
      {"qnn.quantize", {scales, {{}, kFloat64}, none}, {}, "a scale must be float32"},
      {"qnn.quantize", {scales, one, {{}, kInt8}}, {}, "a zero point must be int32"},
      {"qnn.quantize", {scales, scales, none}, {}, "a zero point must have shape (4)"},
      {"qnn.quantize", {{{2, 3}, kFloat32}, scales, zeros}, {}, "a scale must have shape (3)"},
      {"qnn.quantize", {one, scales, zeros}, {}, "axis -1 is out of range for rank 0"},
      {"qnn.dequantize", {data, scales, zeros}, {{"axis", int64_t{2}}}, "axis 2 is out of range"},
      {"qnn.dequantize", {scales, one, none}, {}, "data must be of integers"},
      {"qnn.dequantize", {{{4}, kInt64}, one, none}, {}, "not int64"},
      {"qnn.dense", {{{2, 4}, kInt16}, weight, one, none, one, none}, {}, "int8 or uint8"},
      {"qnn.dense", {data, {{4, 4}, kFloat32}, one, none, one, none}, {}, "int8 or uint8"},
      {"qnn.dense",
       {data, weight, one, none, one, none},
       {{"weight_bits", int64_t{6}}},
       "must be 8"},
      {"qnn.dense",
       {data, {{4, 4}, kUInt8}, one, none, one, none},
       {{"weight_bits", int64_t{7}}},
       "or 7 of int8, not 7 of uint8"},
      {"qnn.dense", {data, weight, scales, zeros, one, none}, {}, "a scale must have shape ()"},
      {"qnn.dense", {data, {{3, 4}, kInt8}, one, none, scales, zeros}, {}, "must have shape (3)"},
      {"qnn.dense", {data, {{3, 5}, kInt8}, one, none, one, none}, {}, "does not fit weight"},
      {"qnn.matmul", {data, {{4, 3}, kInt8}, one, none, scales, zeros}, {}, "have shape (3)"},
      {"qnn.conv2d", {data, weight, one, none, one, none}, {}, "rank 4"},
      {"qnn.conv2d",
       {{{1, 3, 8, 8}, kUInt8}, {{4, 2, 3, 3}, kInt8}, one, none, one, none},
       {},
       "3 input channels"},
  };
  for (const Refusal& refusal : refusals) {
    Result<Expr> call = try_call(refusal.op, refusal.types, refusal.attrs);
    ASSERT_FALSE(call.ok()) << refusal.op << ": " << refusal.message;
    EXPECT_EQ(call.status().code(), ErrorCode::kBadModel);
    EXPECT_THAT(call.status().to_string(), HasSubstr(refusal.message));
  }
}

}  // namespace
}  // namespace collage
