// Casts between float32 and half-width types, alone and next to what native computes in float32.
#include "ops/half.h"

#include <bit>
#include <cmath>
#include <string>

#include "backend/native/check.h"

namespace collage::native {
namespace {

class Half : public ::testing::TestWithParam<DType> {
 protected:
  static Expr widened(const Expr& x) { return call("cast", {x}, {{"dtype", DType::kFloat32}}); }
  static Expr narrowed(const Expr& x) { return call("cast", {x}, {{"dtype", GetParam()}}); }
};

TEST_P(Half, EveryValueIsWidenedExactly) {
  const Expr x = var("x", {16, 4096}, GetParam());
  Tensor bits = Tensor::empty(GetParam(), {16, 4096});
  for (int64_t i = 0; i < bits.size(); ++i) bits.data<uint16_t>()[i] = static_cast<uint16_t>(i);
  check_with_inputs(function({x}, widened(x)), {bits}, {.integers = true});
}

// Values, the middle between neighbours, and what is next to that; ties go to even.
TEST_P(Half, RoundsAsTheReferenceDoes) {
  const Expr x = var("x", {16, 4096, 4});
  Tensor values = Tensor::empty(DType::kFloat32, {16, 4096, 4});
  float* to = values.data<float>();
  for (uint32_t b = 0; b <= 0xffff; ++b) {
    const float low = half_to_float(static_cast<uint16_t>(b), GetParam()),
                high = half_to_float(static_cast<uint16_t>(b + 1), GetParam());
    const float middle = low + (high - low) / 2;
    for (float value :
         {low, middle, std::nextafter(middle, low), std::nextafter(middle, 2 * high)}) {
      // With every bit set, rounding a NaN's bits would make a zero of it.
      *to++ = std::isnan(value) ? std::bit_cast<float>(0x7fffffff) : value;
    }
  }
  check_with_inputs(function({x}, narrowed(x)), {values}, {.integers = true});
}

TEST_P(Half, ConvertsIntegersAndBooleans) {
  const Expr x = var("x", {9, 33}, GetParam());
  for (DType dtype : {DType::kInt32, DType::kInt64, DType::kBool}) {
    check_function(function({x}, call("cast", {x}, {{"dtype", dtype}})), {.integers = true});
    const Expr y = var("y", {9, 33}, dtype);
    check_function(function({y}, narrowed(y)), {.integers = true});
  }
}

TEST_P(Half, AtBothEndsOfAKernel) {
  const Expr x = var("x", {1, 16, 9, 9}, GetParam());
  check_function(function({x}, narrowed(call("nn.relu", {widened(x)}))), {.integers = true});
  const Expr rows = var("rows", {24, 40}, GetParam());
  const CheckOptions rounded{.tolerance = GetParam() == DType::kFloat16 ? 0x1p-10 : 0x1p-7};
  check_function(function({rows}, narrowed(call("nn.softmax", {widened(rows)}))), rounded);
}

TEST_P(Half, AroundProductsAndConvolutions) {
  const Expr rows = var("rows", {24, 40}, GetParam());
  const Expr product = call("nn.dense", {widened(rows), weights({48, 40}, true)});
  check_function(function({rows}, product), {.integers = true});
  check_function(function({rows}, narrowed(product)), {.integers = true});
  const Expr image = var("image", {1, 16, 9, 9}, GetParam());
  const Expr convolution = call("nn.conv2d", {widened(image), weights({32, 16, 3, 3}, true)},
                                {{"padding", Ints{1, 1, 1, 1}}});
  check_function(function({image}, convolution), {.integers = true});
  // Where Winograd's algorithm errs, a result may round to a neighbour.
  check_function(function({image}, narrowed(call("nn.relu", {convolution}))),
                 {.relaxed_tolerance = 1e-2, .integers = true});
}

// Of numbers that are not converted nothing is emitted.
TEST_P(Half, ArithmeticIsLeftToOthers) {
  const Expr x = var("x", {4, 6}, GetParam());
  EXPECT_FALSE(check_supported(function({x}, call("nn.relu", {x}))));
  EXPECT_FALSE(check_supported(function({x}, call("add", {x, x}))));
  EXPECT_FALSE(check_supported(function({x}, call("transpose", {x}))));
}

INSTANTIATE_TEST_SUITE_P(Types, Half, ::testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace collage::native
