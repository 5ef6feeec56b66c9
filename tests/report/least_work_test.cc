// What a kernel has to do at least, by hand-counted figures.
#include "report/least_work.h"

#include <gtest/gtest.h>

#include "choose/costing.h"
#include "ir/text_parser.h"
#include "ops/registry.h"

namespace collage {
namespace {

Function function_of(const std::string& parameters, const std::string& body) {
  register_all_ops();
  Result<Module> module =
      parse_module("#[version = \"0.0.5\"]\ndef @main(" + parameters + ") {\n  " + body + "\n}\n");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module->main();
}

Variant direct(const Function& function, const Work& work = {}) {
  Variant variant = Variant::plain("direct", function);
  variant.work = work;
  return variant;
}

Function convolution(int64_t size, const std::string& attributes) {
  const std::string extent = std::to_string(size);
  return function_of("%x: Tensor[(1, 16, " + extent + ", " + extent +
                         "), float32], %w: Tensor[(32, 16, 3, 3), float32]",
                     "nn.conv2d(%x, %w, " + attributes + ")");
}

TEST(LeastWork, TapsInThePaddingAreNotMultiplied) {
  const Function padded = convolution(7, "padding=[1, 1, 1, 1]");
  const LeastWork work = least_work(padded, direct(padded));
  EXPECT_EQ(work.unit, "float32");
  EXPECT_DOUBLE_EQ(work.operations, 2.0 * 32 * 16 * 19 * 19) << "19 of 21 taps in each dimension";
  EXPECT_DOUBLE_EQ(function_flops(padded), 2.0 * 32 * 16 * 21 * 21);
  EXPECT_DOUBLE_EQ(work.activations, 4.0 * (16 * 49 + 32 * 16 * 9 + 32 * 49));
  EXPECT_EQ(work.constants, 0);
}

TEST(LeastWork, WinogradMultipliesFewerTimes) {
  const Function plain = convolution(10, "padding=[0, 0, 0, 0]");
  const double all = least_work(plain, direct(plain)).operations;
  EXPECT_DOUBLE_EQ(all, function_flops(plain));
  const auto by_winograd = [&](int side) {
    return least_work(plain, direct(plain, Work::of_winograd(side))).operations;
  };
  EXPECT_DOUBLE_EQ(by_winograd(4), all / 4);
  EXPECT_NEAR(by_winograd(2), all / 2.25, 1);
  const LeastWork parts =
      least_work(plain, direct(plain, {.multiplications = 0.75, .unit = "bfloat16"}));
  EXPECT_DOUBLE_EQ(parts.operations, 3 * all / 4);
  EXPECT_EQ(parts.unit, "bfloat16");
}

TEST(LeastWork, PartsAreMultipliedByTheirUnit) {
  const Function product = function_of(
      "%x: Tensor[(8, 64), float32], %w: Tensor[(32, 64), float32]", "nn.dense(%x, %w)");
  const double once = function_flops(product);
  for (const Work& stated :
       {Work(), Work{.unit = "bfloat16"}, Work{.multiplications = 2, .unit = "bfloat16"},
        Work{.multiplications = 6, .unit = "bfloat16"}, Work{.unit = "int16"},
        Work{.unit = "any"}}) {
    const LeastWork work = least_work(product, direct(product, stated));
    EXPECT_EQ(work.unit, stated.unit);
    EXPECT_DOUBLE_EQ(work.operations, stated.multiplications * once) << stated.unit;
  }
}

TEST(LeastWork, QuantisedProductsAreThoseOfBytes) {
  const Function product = function_of("%x: Tensor[(8, 64), uint8], %w: Tensor[(32, 64), int8]",
                                       "%0 = qnn.dense(%x, %w, 0.1f, 3, 0.1f, 0);\n  nn.relu(%0)");
  for (const char* unit : {"int8", "any"}) {
    const LeastWork work = least_work(product, direct(product, {.unit = unit}));
    EXPECT_EQ(work.unit, "int8") << unit;
    EXPECT_DOUBLE_EQ(work.operations, 2.0 * 8 * 32 * 64) << unit;
    EXPECT_DOUBLE_EQ(work.activations, 8 * 64 + 32 * 64 + 4 * 8 * 32) << unit;
  }
}

TEST(LeastWork, AnEnlargedImageIsMultipliedOnceAPixel) {
  const Function enlarged =
      function_of("%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(32, 16, 3, 3), float32]",
                  "%0 = image.resize2d(%x, size=[16, 16], method=\"nearest_neighbor\", "
                  "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\");\n"
                  "  nn.conv2d(%0, %w, padding=[1, 1, 1, 1])");
  // Two pixels in each dimension, and one at either border.
  EXPECT_DOUBLE_EQ(least_work(enlarged, direct(enlarged)).operations, 2.0 * 32 * 16 * 30 * 30);
}

TEST(LeastWork, TransposedTapsThatLeadOutsideAreNotMultiplied) {
  const Function transposed =
      function_of("%x: Tensor[(1, 16, 4, 4), float32], %w: Tensor[(16, 8, 4, 4), float32]",
                  "nn.conv2d_transpose(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1])");
  // Of four taps a pixel one leads outside at either border.
  EXPECT_DOUBLE_EQ(least_work(transposed, direct(transposed)).operations, 2.0 * 16 * 8 * 14 * 14);
}

TEST(LeastWork, HiddenScoresAreNotComputed) {
  auto attention = [](const char* causal) {
    return function_of(
        "%q: Tensor[(2, 4, 8), float32], %k: Tensor[(2, 4, 8), float32], %v: Tensor[(2, 4, 8), "
        "float32]",
        std::string("nn.attention(%q, %k, %v, scale=1f, causal=") + causal + ")");
  };
  const Function all = attention("False"), causal = attention("True");
  EXPECT_DOUBLE_EQ(least_work(all, direct(all)).operations, function_flops(all));
  EXPECT_DOUBLE_EQ(least_work(causal, direct(causal)).operations, function_flops(causal) * 10 / 16);
}

TEST(LeastWork, OnlyWhatIsReadCounts) {
  const Function gather = function_of(
      "%table: Tensor[(1000, 64), float32], %at: Tensor[(5), int64]", "take(%table, %at, axis=0)");
  EXPECT_DOUBLE_EQ(least_work(gather, direct(gather)).activations, 4.0 * 2 * 5 * 64 + 8 * 5);
  const Function strided =
      function_of("%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(32, 16, 1, 1), float32]",
                  "nn.conv2d(%x, %w, strides=[2, 2])");
  EXPECT_DOUBLE_EQ(least_work(strided, direct(strided)).activations,
                   4.0 * (16 * 16 + 32 * 16 + 32 * 16));
  const Function cut =
      function_of("%x: Tensor[(4, 100), float32]",
                  "%0 = reshape(%x, newshape=[400]);\n"
                  "  strided_slice(%0, begin=[0], end=[40], strides=[1], axes=[0])");
  EXPECT_DOUBLE_EQ(least_work(cut, direct(cut)).activations, 4.0 * 2 * 40);
  EXPECT_EQ(least_work(cut, direct(cut)).operations, 0) << "moving is no arithmetic";
  EXPECT_EQ(least_work(cut, direct(cut, {.in_place = true})).activations, 0);
}

TEST(LeastWork, SmallerNumbersAreFewerBytes) {
  register_all_ops();
  const Expr x = make_var("x", TensorType{{8, 64}, DType::kFloat32});
  const Expr w = make_constant(Tensor::zeros(DType::kFloat32, {32, 64}));
  const Function product = make_function({x}, *make_call("nn.dense", {x, w}));
  Variant variant = direct(product);
  EXPECT_DOUBLE_EQ(least_work(product, variant).constants, 4.0 * 32 * 64);
  EXPECT_DOUBLE_EQ(least_work(product, variant).activations, 4.0 * (8 * 64 + 8 * 32));
  variant.work.constants = 0.5;
  variant.inputs[0].dtype = DType::kBFloat16;
  EXPECT_DOUBLE_EQ(least_work(product, variant).constants, 2.0 * 32 * 64);
  EXPECT_DOUBLE_EQ(least_work(product, variant).activations, 2.0 * 8 * 64 + 4.0 * 8 * 32);
  const TensorType type{{8, 64}, DType::kFloat32};
  Encoding small = plain_encoding(type);
  small.dtype = DType::kBFloat16;
  EXPECT_DOUBLE_EQ(least_work_of_conversion(type, plain_encoding(type), small).activations,
                   6.0 * 8 * 64);
}

}  // namespace
}  // namespace collage
