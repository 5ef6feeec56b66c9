// Quantised tensors: chains that read and write bytes in every layout, what moves bytes, and
// products of bytes as products of real numbers.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/check.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/kernel_group.h"
#include "backend/native/kernel_variants.h"
#include "backend/native/native_backend.h"
#include "backend/native/stages/stage_schedule.h"
#include "check.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"

namespace collage::native {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Expr floats(std::vector<float> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return make_constant(Tensor::from<float>(shape, values));
}
Expr integers(std::vector<int32_t> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return make_constant(Tensor::from<int32_t>(shape, values));
}
/// Bytes from -60 to 60.
Expr byte_weights(Shape shape) {
  Tensor tensor = Tensor::empty(DType::kInt8, std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<int8_t>()[i] = static_cast<int8_t>(i * 37 % 121 - 60);
  return make_constant(tensor);
}
/// A scale for each of the channels.
Expr scales(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(0.002f + 0.0001f * static_cast<float>(i));
  return floats(values);
}
Expr zeros(int64_t count, int32_t step = 0) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(i) % 7 * step);
  return integers(values);
}

Expr real(const Expr& x, float scale = 0.05f, int32_t zero_point = 3) {
  return call("qnn.dequantize", {x, make_scalar(scale), make_scalar(zero_point)});
}
Expr bytes(const Expr& x, float scale = 0.07f, int32_t zero_point = 0,
           const std::string& to = "uint8") {
  return call("qnn.quantize", {x, make_scalar(scale), make_scalar(zero_point)},
              {{"out_dtype", to}});
}
/// One quantum of results that reach over most of their type.
const CheckOptions kOneQuantum{.tolerance = 0.012};

TEST(Quantised, ChainsFromBytesToBytesInEveryLayout) {
  for (const Shape& shape : {Shape{1, 64, 14, 14}, Shape{2, 20, 7, 9}, Shape{1, 17, 3, 5, 4}}) {
    const Expr a = var("a", shape, DType::kUInt8), b = var("b", shape, DType::kInt8);
    const Expr sum = call("nn.relu", {call("add", {real(a), real(b, 0.1f, -5)})});
    check_function(function({a, b}, bytes(sum)), {.tolerance = 0, .least_variants = 3});
  }
  const Expr a = var("a", {7, 33}, DType::kInt8);
  check_function(function({a}, bytes(real(a), 0.02f, -4, "int8")), {.tolerance = 0});
}

TEST(Quantised, AScaleForEveryChannel) {
  for (int64_t axis : {1, -2, 0}) {
    SCOPED_TRACE(axis);
    const Shape shape{2, 20, 9, 8};
    const int64_t count = shape[static_cast<size_t>(axis < 0 ? axis + 4 : axis)];
    const Expr x = var("x", shape, DType::kUInt8), y = var("y", shape);
    check_function(function({x}, call("qnn.dequantize", {x, scales(count), zeros(count, 3)},
                                      {{"axis", axis}})),
                   {.tolerance = 0, .least_variants = 3});
    check_function(function({y}, call("qnn.quantize", {y, scales(count), zeros(count, 5)},
                                      {{"axis", axis}, {"out_dtype", std::string("int8")}})),
                   {.tolerance = 0, .least_variants = 3});
  }
}

TEST(Quantised, NumbersAtTheEdges) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<float> values{0,      0.5f,   1.5f,  2.5f,  -0.5f,  -1.5f, 126.5f, 127.5f,
                                  128,    -128,   -129,  1e30f, -1e30f, inf,   -inf,   nan,
                                  254.5f, 255.5f, 0.49f, 0.51f, 1e-30f, -nan};
  Tensor input = Tensor::empty(DType::kFloat32, {66});
  for (int64_t i = 0; i < input.size(); ++i)
    input.data<float>()[i] = values[static_cast<size_t>(i) % values.size()];
  for (const std::string to : {"int8", "uint8", "int16", "uint16", "int32"})
    for (float scale : {1.0f, 0.1f})
      for (int32_t zero : {0, 7}) {
        SCOPED_TRACE(to);
        const Expr x = var("x", {66});
        check_with_inputs(function({x}, bytes(x, scale, zero, to)), {input},
                          {.tolerance = 0, .every_width = true});
        check_with_inputs(function({x}, real(bytes(x, scale, zero, to), scale, zero)), {input},
                          {.tolerance = 0, .every_width = true});
        check_with_inputs(function({x}, real(bytes(x, scale, zero, to), scale, zero + 1)), {input},
                          {.tolerance = 0, .every_width = true});
      }
}

TEST(Quantised, IntegersEndWhereTheirTypesDo) {
  Tensor input = Tensor::empty(DType::kUInt8, {512});
  for (int64_t i = 0; i < input.size(); ++i) input.data<uint8_t>()[i] = static_cast<uint8_t>(i);
  const Expr x = var("x", {512}, DType::kUInt8);
  for (const std::string to : {"int8", "uint8", "int16", "uint16"})
    for (float scale : {1.3f, 700.0f})
      for (int32_t zero : {0, 7, 100}) {
        SCOPED_TRACE(fmt::format("{} {} {}", to, scale, zero));
        check_with_inputs(function({x}, bytes(real(x, scale, 120), 1, zero, to)), {input},
                          {.tolerance = 0, .every_width = true});
      }
}

TEST(Quantised, ParametersThatAreComputed) {
  const Expr x = var("x", {5, 40}), scale = var("s", {}), zero = var("z", {}, DType::kInt32);
  const Expr q = call("qnn.quantize", {x, scale, zero}, {{"out_dtype", std::string("uint8")}});
  Tensor data = testing::random_tensor({5, 40}, 3);
  check_with_inputs(function({x, scale, zero}, q),
                    {data, Tensor::from<float>({}, {0.013f}), Tensor::from<int32_t>({}, {117})},
                    {.tolerance = 0});
}

// As dynamic quantisation makes them: the rows' zero point is no constant.
TEST(Quantised, ProductsWithAComputedZeroPoint) {
  const Expr x = var("x", {12, 64}, DType::kUInt8), zero = var("z", {}, DType::kInt32);
  Tensor weight = collage::random_tensor(TensorType{{64, 48}, DType::kInt8}, 5, {-128, 127});
  const Function product =
      function({x, zero}, call("qnn.matmul", {x, make_constant(weight), make_scalar(1.0f), zero,
                                              make_scalar(1.0f), make_scalar(int32_t{0})}));
  check_with_inputs(product,
                    {collage::random_tensor(TensorType{{12, 64}, DType::kUInt8}, 6, {0, 255}),
                     Tensor::from<int32_t>({}, {117})},
                    {.tolerance = 0, .least_variants = 3});
}

TEST(Quantised, StatisticsBetweenBytes) {
  for (const Shape& shape : {Shape{1, 64, 7, 7}, Shape{2, 20, 20, 20}}) {
    const Expr x = var("x", shape, DType::kUInt8);
    check_function(function({x}, bytes(call("nn.global_avg_pool2d", {real(x)}), 0.07f, 10, "int8")),
                   {.tolerance = 0.012, .least_variants = 3});
    check_function(
        function({x}, bytes(call("mean", {real(x)}, {{"axis", Ints{2, 3}}, {"keepdims", true}}))),
        {.tolerance = 0.012, .least_variants = 3});
    check_function(function({x}, call("nn.global_max_pool2d", {x})),
                   {.tolerance = 0, .least_variants = 3});
  }
  const Expr x = var("x", {9, 130}, DType::kInt8);
  check_function(function({x}, bytes(call("nn.softmax", {real(x)}), 0.001f)), kOneQuantum);
  check_function(
      function({x}, bytes(call("nn.layer_norm", {real(x), weights({130}), weights({130})}), 0.02f,
                          -9, "int8")),
      kOneQuantum);
  check_function(function({x}, bytes(call("nn.gelu", {real(x)}), 0.02f)), kOneQuantum);
  check_function(function({x}, call("max", {x}, {{"axis", Ints{1}}})), {.tolerance = 0});
}

TEST(Quantised, BytesAreMovedAndCompared) {
  const Expr a = var("a", {1, 32, 30, 37}, DType::kUInt8),
             b = var("b", {1, 20, 30, 37}, DType::kUInt8);
  const auto exact = [](const Function& f, int least = 1) {
    check_function(f, {.tolerance = 0, .least_variants = least});
  };
  for (auto [size, stride, pad] : {std::array{3, 2, 1}, std::array{2, 2, 0}, std::array{3, 1, 1}}) {
    const Attrs attrs{{"pool_size", Ints{size, size}},
                      {"strides", Ints{stride, stride}},
                      {"padding", Ints{pad, pad, pad, pad}}};
    exact(function({a}, call("nn.max_pool2d", {a}, attrs)), 3);
    check_function(function({a}, bytes(call("nn.avg_pool2d", {real(a)}, attrs))), kOneQuantum);
  }
  exact(function({a, b}, call("concatenate", {make_tuple({a, b})}, {{"axis", int64_t{1}}})), 2);
  exact(
      function({a, b}, bytes(call("nn.relu", {call("concatenate", {make_tuple({real(a), real(b)})},
                                                   {{"axis", int64_t{1}}})}))),
      2);
  exact(function({a}, call("transpose", {a}, {{"axes", Ints{0, 2, 3, 1}}})));
  exact(function({a}, call("strided_slice", {a},
                           {{"begin", Ints{8, 1}},
                            {"end", Ints{24, 29}},
                            {"strides", Ints{1, 2}},
                            {"axes", Ints{1, 2}}})),
        2);
  exact(function({a}, call("nn.pad", {a, make_scalar(uint8_t{9})},
                           {{"pad_width", IntLists{{0, 0}, {0, 0}, {1, 2}, {3, 0}}}})),
        3);
  exact(function(
      {a, b}, call("split", {a}, {{"indices_or_sections", Ints{16, 24}}, {"axis", int64_t{1}}})));
  exact(function({a}, call("cast", {a}, {{"dtype", DType::kInt8}})), 3);
  const Expr x = var("x", {3, 70});
  exact(function(
      {x}, call("cast", {call("multiply", {x, make_scalar(100.0f)})}, {{"dtype", DType::kInt8}})));
}

TEST(Quantised, AConvolutionOfRealNumbersWritesBytes) {
  const Expr x = var("x", {1, 32, 14, 13}, DType::kUInt8);
  const Expr y = call("nn.conv2d", {real(x, 0.02f, 128), weights({48, 32, 3, 3})},
                      {{"padding", Ints{1, 1, 1, 1}}});
  check_function(function({x}, bytes(call("nn.relu", {y}), 0.5f)),
                 {.tolerance = 0.02, .relaxed_tolerance = 0.02, .least_variants = 2});
}

TEST(Quantised, ProductsOfBytes) {
  const Expr x = var("x", {1, 32, 14, 13}, DType::kUInt8);
  const auto conv = [&](const Expr& weight, int64_t groups) {
    const int64_t out = weight->tensor_type().shape[0];
    return call("qnn.conv2d",
                {x, weight, make_scalar(0.02f), make_scalar(int32_t{120}), scales(out), zeros(out)},
                {{"padding", Ints{1, 1, 1, 1}}, {"groups", groups}});
  };
  check_function(function({x}, conv(byte_weights({48, 32, 3, 3}), 1)), {.least_variants = 2});
  check_function(function({x}, conv(byte_weights({32, 1, 3, 3}), 32)), {.least_variants = 2});
  const Expr biased = call("nn.bias_add", {conv(byte_weights({48, 32, 3, 3}), 1), weights({48})});
  check_function(function({x}, bytes(call("nn.relu", {biased}), 0.05f)),
                 {.tolerance = 0.02, .relaxed_tolerance = 0.02, .least_variants = 2});

  const Expr row = var("row", {5, 64}, DType::kInt8), other = var("other", {64, 40}, DType::kInt8);
  const Expr dense = call("qnn.dense", {row, byte_weights({48, 64}), make_scalar(0.02f),
                                        make_scalar(int32_t{-5}), scales(48), zeros(48)});
  check_function(function({row}, dense));
  check_function(function({row}, bytes(call("nn.gelu", {dense}), 0.05f)), {.tolerance = 0.02});
  check_function(function(
      {row, other}, call("qnn.matmul", {row, other, make_scalar(0.02f), make_scalar(int32_t{-5}),
                                        make_scalar(0.01f), make_scalar(int32_t{4})})));
}

TEST(Quantised, ProductsOfBytesByAnInstruction) {
  const auto names = [](const Function& f) {
    std::vector<std::string> found;
    for (const Variant& variant : variants_of(f, kDots)) found.push_back(variant.name);
    return found;
  };
  const bool any = !machine_intrinsics().empty();
  if (!any) GTEST_SKIP() << "this processor has no instruction for products of small integers";
  for (const auto& [m, k, n] :
       {std::array{13, 64, 48}, std::array{32, 96, 40}, std::array{5, 30, 16}}) {
    for (const int64_t bits : {8, 7}) {
      const Expr row = var("row", {m, k}, DType::kUInt8);
      const Expr dense = call("qnn.dense",
                              {row, byte_weights({n, k}), make_scalar(0.02f),
                               make_scalar(int32_t{117}), scales(n), zeros(n, bits == 7 ? 0 : 2)},
                              {{"weight_bits", bits}});
      for (const Function& f :
           {function({row}, dense), function({row}, bytes(call("nn.relu", {dense}), 0.05f))}) {
        EXPECT_THAT(names(f), Contains(HasSubstr("dot_")));
        for (const Variant& variant : variants_of(f, kDots))
          check_variant(f, variant, {.tolerance = 0.012});
      }
    }
  }
}

TEST(Quantised, HeavyWeightsOfBytesAreReadAhead) {
  if (machine_intrinsics().empty())
    GTEST_SKIP() << "this processor has no instruction for products of small integers";
  const auto schedules = [](int64_t rows, int64_t columns) {
    const Expr x = var("x", {rows, 512}, DType::kUInt8);
    const Expr y = call("qnn.dense",
                        {x, byte_weights({columns, 512}), make_scalar(0.02f),
                         make_scalar(int32_t{117}), scales(columns), zeros(columns)},
                        {{"weight_bits", int64_t{7}}});
    std::string names;
    for (const Variant& variant : variants_of(function({x}, y), kDots)) {
      names += variant.name + "; ";
      if (variant.name.ends_with(" ahead"))
        check_variant(function({x}, y), variant, {.tolerance = 1e-5});
    }
    return names;
  };
  EXPECT_THAT(schedules(70, 512), HasSubstr(" tasks 1 steps 1 ahead"));
  EXPECT_THAT(schedules(70, 256), Not(HasSubstr("ahead")));  // stay in a cache
  EXPECT_THAT(schedules(7, 512), Not(HasSubstr("ahead")));   // one pass
}

TEST(Quantised, AnAddedTensorOfBytes) {
  const Expr x = var("x", {1, 16, 9, 10}, DType::kUInt8),
             r = var("r", {1, 32, 9, 10}, DType::kUInt8);
  const Expr y = call("qnn.conv2d",
                      {x, byte_weights({32, 16, 1, 1}), make_scalar(0.02f),
                       make_scalar(int32_t{120}), scales(32), zeros(32)},
                      {{"weight_bits", int64_t{7}}});
  const Expr sum = call("add", {real(bytes(y, 0.05f, 120), 0.05f, 120), real(r, 0.03f, 5)});
  const Function f = function({x, r}, bytes(sum, 0.06f, 7));
  check_function(f, {.tolerance = 0.012, .every_width = true});
  for (const Variant& variant : variants_of(f, kDots))
    check_variant(f, variant, {.tolerance = 0.012});
}

TEST(Quantised, ConvolutionsByAnInstruction) {
  if (machine_intrinsics().empty())
    GTEST_SKIP() << "this processor has no instruction for products of small integers";
  struct Form {
    int64_t in, out, kernel, stride, pad, size;
  };
  for (const Form& form :
       {Form{32, 48, 3, 1, 1, 14}, Form{16, 24, 3, 2, 1, 15}, Form{64, 32, 1, 1, 0, 7},
        Form{8, 16, 1, 2, 0, 9}, Form{4, 20, 5, 2, 2, 12}, Form{3, 16, 3, 2, 1, 11}}) {
    SCOPED_TRACE(fmt::format("{} to {}, {} by {}", form.in, form.out, form.kernel, form.stride));
    const Expr x = var("x", {2, form.in, form.size, form.size + 3}, DType::kUInt8);
    const Expr y =
        call("qnn.conv2d",
             {x, byte_weights({form.out, form.in, form.kernel, form.kernel}), make_scalar(0.02f),
              make_scalar(int32_t{120}), scales(form.out), zeros(form.out)},
             {{"padding", Ints(4, form.pad)},
              {"strides", Ints(2, form.stride)},
              {"weight_bits", int64_t{form.pad == 1 ? 7 : 8}}});
    const Expr biased = call("nn.bias_add", {y, weights({form.out})});
    for (const Function& f :
         {function({x}, y), function({x}, bytes(call("nn.relu", {biased}), 0.05f))}) {
      const std::vector<Variant> variants = variants_of(f, kDots);
      ASSERT_FALSE(variants.empty());
      EXPECT_EQ(variants.front().outputs[0].layout, Layout::channels_last(4));
      for (const Variant& variant : variants) check_variant(f, variant, {.tolerance = 0.012});
    }
  }
  // Channels of their own, and a single one.
  const Expr x = var("x", {1, 32, 9, 9}, DType::kUInt8),
             grey = var("x", {1, 1, 9, 9}, DType::kUInt8);
  const auto conv = [](const Expr& data, const Expr& weight, int64_t groups) {
    const int64_t out = weight->tensor_type().shape[0];
    return function({data}, call("qnn.conv2d",
                                 {data, weight, make_scalar(0.02f), make_scalar(int32_t{120}),
                                  scales(out), zeros(out)},
                                 {{"groups", groups}}));
  };
  EXPECT_TRUE(variants_of(conv(x, byte_weights({32, 1, 3, 3}), 32), kDots).empty());
  EXPECT_TRUE(variants_of(conv(grey, byte_weights({16, 1, 4, 4}), 1), kDots).empty());
}

TEST(Quantised, DepthwiseConvolutionsWithChannelsLast) {
  struct Form {
    int64_t channels, kernel, stride, size;
  };
  for (const Form& form :
       {Form{32, 3, 1, 14}, Form{24, 3, 2, 15}, Form{144, 5, 1, 9}, Form{960, 3, 1, 7}}) {
    SCOPED_TRACE(fmt::format("{} channels by {}", form.channels, form.kernel));
    const Expr x = var("x", {2, form.channels, form.size, form.size + 2}, DType::kUInt8);
    const Expr y =
        call("qnn.conv2d",
             {x, byte_weights({form.channels, 1, form.kernel, form.kernel}), make_scalar(0.02f),
              make_scalar(int32_t{120}), scales(form.channels), zeros(form.channels)},
             {{"padding", Ints(4, form.kernel / 2)},
              {"strides", Ints(2, form.stride)},
              {"groups", form.channels}});
    for (const Function& f :
         {function({x}, y), function({x}, bytes(call("nn.relu", {y}), 0.05f))}) {
      const std::vector<Variant> variants =
          make_native_backend()->variants(f, Target{"native", {}, {}}, {2, ""}).value();
      const auto last = std::find_if(variants.begin(), variants.end(), [](const Variant& variant) {
        return variant.outputs[0].layout == Layout::channels_last(4);
      });
      ASSERT_NE(last, variants.end());
      EXPECT_THAT(last->name, HasSubstr("depthwise"));
      check_variant(f, *last, {.tolerance = 0.012});
    }
  }
}

TEST(Quantised, WeightsOfAConvolutionAreConstant) {
  const Expr x = var("x", {1, 8, 9, 9}, DType::kUInt8), w = var("w", {8, 8, 3, 3}, DType::kInt8);
  EXPECT_FALSE(check_supported(
      function({x, w}, call("qnn.conv2d", {x, w, make_scalar(0.02f), make_scalar(int32_t{0}),
                                           make_scalar(0.02f), make_scalar(int32_t{0})}))));
}

/// The steps of the function's schedule in the plain layout.
std::string schedule_of(const Function& f) {
  const std::string text =
      with_schedule(tensor_program::plan_stages(emitted_stages(f).value()), {}, 2)->to_string();
  return text.substr(text.find("schedule"));
}

TEST(Quantised, VectorsFillRegistersOfTheWidestNumbers) {
  const Expr x = var("x", {4, 300}, DType::kUInt8), y = var("y", {4, 300}, DType::kUInt8);
  const auto vectors = [](int width, int loop = 0) {
    return fmt::format("vectorise(i{}, {})", loop, width);
  };
  EXPECT_THAT(schedule_of(function({x, y}, call("maximum", {x, y}))),
              HasSubstr(vectors(4 * vector_width())));
  EXPECT_THAT(schedule_of(function({x}, bytes(real(x)))), HasSubstr(vectors(vector_width())));
  const Expr narrow = var("x", {40, vector_width() + 3}, DType::kUInt8);
  const Expr row = var("row", {vector_width() + 3}, DType::kUInt8);
  EXPECT_THAT(schedule_of(function({narrow, row}, call("maximum", {narrow, row}))),
              HasSubstr(vectors(vector_width(), 1)));
}

TEST(Quantised, ConversionsOfBytesBetweenLayouts) {
  const std::unique_ptr<Backend> backend = make_native_backend();
  const TensorType type{{2, 20, 5, 7}, DType::kUInt8};
  const std::vector<Layout> layouts{{}, Layout::channels_last(4), Layout::channels_blocked(4, 16)};
  const Expr x = var("x", type.shape, DType::kUInt8);
  const Function identity = function({x}, x);
  for (const Layout& from : layouts)
    for (const Layout& to : layouts) {
      if (from == to) continue;
      SCOPED_TRACE(from.to_string() + " to " + to.to_string());
      Variant variant = Variant::plain("", identity);
      variant.inputs[0].layout = from;
      variant.outputs[0].layout = to;
      auto kernel = backend->compile_conversion(type, variant.inputs[0], variant.outputs[0],
                                                CompileOptions{2, ""});
      ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
      Tensor data = Tensor::empty(DType::kUInt8, type.shape);
      for (int64_t i = 0; i < data.size(); ++i)
        data.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7);
      const auto got = testing::run_guarded(**kernel, identity, variant, {data});
      ASSERT_EQ(got.size(), 1U);
      EXPECT_EQ(std::memcmp(got[0].raw(), data.raw(), data.bytes()), 0);
    }
}

}  // namespace
}  // namespace collage::native
