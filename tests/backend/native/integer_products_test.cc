// Products of real numbers as products of 16-bit integers: they round as they say, sums do not
// overflow, and rows with what is no number give none.
#include "backend/native/integers/integer_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backend/check.h"
#include "backend/native/called_program.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/native_backend.h"
#include "check.h"

namespace collage::native {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kSchedules = {"stages dot_int16x2 steps 1",
                                             "rows 4 dot_int16x2 steps 1"};

Variant variant_of(const Function& f, const std::string& schedule) {
  Variant variant = scheduled(schedule, f, kIntegers);
  variant.weights.clear();
  variant.rounding.fixed_point = 0x1p-11;
  return variant;
}

bool has_instructions() {
  for (const tensor_program::Intrinsic* intrinsic : machine_intrinsics())
    if (intrinsic->name == "dot_int16x2") return true;
  return false;
}

class IntegerProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_instructions()) GTEST_SKIP() << "no instructions for dot_int16x2";
  }
};

void check(const Function& f) {
  for (const std::string& schedule : kSchedules)
    check_variant(f, variant_of(f, schedule), {.tolerance = 1e-3});
}

/// What the first schedule gives for the input.
Tensor result(const Function& f, const Tensor& input) {
  const auto backend = make_native_backend();
  const Variant variant = variant_of(f, kSchedules[0]);
  const auto kernel = backend->compile(f, variant, Target{"native", {}, {}}, {2, ""});
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return testing::run_guarded(**kernel, f, variant, {input})[0];
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::zeros(DType::kFloat32, shape);
  std::fill_n(tensor.data<float>(), tensor.size(), value);
  return tensor;
}

TEST(IntegerProgram, HasUnitsOfRowsAndColumns) {
  const Expr x = var("x", {16, 32});
  const auto made = with_integer_products(
      function({x}, call("nn.relu", {call("nn.dense", {x, weights({20, 32})})})));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_GT(made->rounding, 0x1p-16);
  EXPECT_LT(made->rounding, 0x1p-12);
  const auto stages = emitted_stages(made->function);
  ASSERT_TRUE(stages.ok()) << stages.status().to_string();
  const std::string text = stages->to_string();
  EXPECT_THAT(text, HasSubstr("const c1: int32[32, 32];"));  // columns are whole vectors
  EXPECT_THAT(text, HasSubstr("stage s0[d0:16, d1:32] = sum(r0:32) int32(int16("));
  EXPECT_THAT(text, HasSubstr("result y0[i0:16, i1:20] = max(float32(s0[i0, i1]) * ("));
}

TEST(IntegerProgram, IsOfConstantMatricesAndOfRowsEnough) {
  const auto refused = [](const Shape& left, const Expr& right) {
    const Expr x = var("x", left);
    std::vector<Expr> params = {x};
    if (right->kind() == ExprKind::kVar) params.push_back(right);
    return !with_integer_products(function(params, call("nn.matmul", {x, right}))).ok();
  };
  EXPECT_FALSE(refused({5, 32}, weights({32, 32})));
  EXPECT_TRUE(refused({4, 32}, weights({32, 32})));
  EXPECT_TRUE(refused({16, 32}, var("w", {32, 32})));
  EXPECT_TRUE(refused({2, 16, 32}, weights({2, 32, 32})));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(refused({16, 32}, make_constant(filled({32, 32}, infinity))));
}

TEST_F(IntegerProducts, MatchTheReference) {
  const Expr x = var("x", {21, 64}), deep = var("x", {3, 7, 64}), many = var("x", {70, 600});
  check(function({x}, call("nn.dense", {x, weights({48, 64})})));
  check(function({x}, call("nn.matmul", {x, weights({64, 47})})));
  check(function({x}, call("nn.matmul", {x, weights({33, 64})}, {{"transpose_b", true}})));
  check(function({deep}, call("nn.dense", {deep, weights({32, 64})})));
  check(function({many}, call("nn.matmul", {many, weights({600, 530})})));
}

TEST_F(IntegerProducts, WithWhatPrecedesAndFollows) {
  const Expr x = var("x", {21, 64}), z = var("z", {21, 48});
  const Expr y = call("nn.dense", {call("nn.silu", {x}), weights({48, 64})});
  check(function({x, z}, call("nn.gelu", {call("add", {call("add", {y, weights({48})}), z})})));
}

TEST_F(IntegerProducts, OfRandomShapes) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  for (int trial = 0; trial < 8; ++trial) {
    const Expr x = var("x", {pick(5, 60), pick(16, 200)});
    const Expr w = weights({x->tensor_type().shape[1], pick(1, 150)});
    SCOPED_TRACE(x->type().to_string() + w->type().to_string());
    const Function f = function({x}, call("nn.matmul", {x, w}));
    check_variant(f, variant_of(f, kSchedules[0]), {.tolerance = 1e-3});
  }
}

// The norms of rows and columns are as large as they may be, and all products of one sign.
TEST_F(IntegerProducts, TheLargestSumsDoNotOverflow) {
  for (const float sign : {1.0f, -1.0f}) {
    for (const int64_t terms : {16, 1000, 6000}) {
      const Expr x = var("x", {20, terms});
      const Function f =
          function({x}, call("nn.dense", {x, make_constant(filled({48, terms}, sign * 3))}));
      const Tensor got = result(f, filled({20, terms}, 0.7f));
      const float want = sign * 2.1f * static_cast<float>(terms);
      for (int64_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got.data<float>()[i], want, 1e-3f * std::abs(want)) << terms;
    }
  }
}

TEST_F(IntegerProducts, OneNumberMayStandOut) {
  const Expr x = var("x", {20, 64});
  const Function f = function({x}, call("nn.dense", {x, make_constant(filled({32, 64}, 1))}));
  Tensor input = filled({20, 64}, 1e-4f);
  for (int64_t row = 0; row < 20; ++row) input.data<float>()[row * 65] = -1e20f;
  const Tensor got = result(f, input);
  for (int64_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got.data<float>()[i], -1e20f, 1e16f);
}

// Rows and columns have units of their own.
TEST_F(IntegerProducts, OfVeryDifferentSize) {
  Tensor w = as<ConstantNode>(weights({40, 64}))->value.clone();
  for (int64_t n = 0; n < 40; ++n)
    for (int64_t k = 0; k < 64; ++k)
      w.data<float>()[n * 64 + k] *= std::pow(10.0f, static_cast<float>(n) / 2 - 10);
  const Expr x = var("x", {32, 64});
  const Function f = function({x}, call("nn.dense", {x, make_constant(w)}));
  Tensor input = testing::random_tensor({32, 64}, 5);
  for (int64_t i = 0; i < input.size(); ++i)
    input.data<float>()[i] *= std::pow(10.0f, static_cast<float>(i / 64) / 2 - 20);
  const Tensor got = result(f, input), want = testing::evaluate(f, {input})[0];
  for (int64_t n = 0; n < 40; ++n)
    for (int64_t row = 0; row < 32; ++row) {
      double size = 0;
      for (int64_t k = 0; k < 64; ++k)
        size += std::abs(static_cast<double>(input.data<float>()[row * 64 + k]) *
                         static_cast<double>(w.data<float>()[n * 64 + k]));
      const int64_t at = row * 40 + n;
      ASSERT_NEAR(got.data<float>()[at], want.data<float>()[at], 1e-3 * size) << row << " " << n;
    }
}

TEST_F(IntegerProducts, WhatIsNoNumberMakesItsRowNaN) {
  const Expr x = var("x", {20, 64});
  const Function f = function({x}, call("nn.dense", {x, weights({48, 64})}));
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Tensor input = testing::random_tensor({20, 64}, 2);
    input.data<float>()[3 * 64 + 5] = value;
    const Tensor got = result(f, input);
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::isnan(got.data<float>()[i]), i / 48 == 3) << i;
  }
}

TEST_F(IntegerProducts, ZerosGiveZeros) {
  const Expr x = var("x", {9, 32});
  const Function f = function({x}, call("nn.dense", {x, weights({16, 32})}));
  const Tensor got = result(f, Tensor::zeros(DType::kFloat32, {9, 32}));
  for (int64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got.data<float>()[i], 0);
}

}  // namespace
}  // namespace collage::native
