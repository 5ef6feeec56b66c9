// Groups without a template: element-wise, broadcasting, injective, windows and statistics, fused.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>

#include "backend/native/native_backend.h"
#include "check.h"

namespace collage::native {
namespace {

TEST(Generic, UnaryOperators) {
  for (std::string_view op :
       {"nn.relu", "sigmoid", "tanh", "exp", "erf", "abs", "negative", "ceil", "floor", "round",
        "nn.gelu", "nn.silu", "nn.hard_sigmoid", "nn.hard_swish", "nn.elu", "nn.softplus",
        "nn.softsign", "nn.mish", "nn.leaky_relu"}) {
    SCOPED_TRACE(op);
    const Expr x = var("x", {3, 50});
    check_function(function({x}, call(op, {x})), {.tolerance = 2e-6});
  }
  const Expr x = var("x", {7, 33});
  for (std::string_view op : {"log", "sqrt", "rsqrt", "reciprocal"}) {
    SCOPED_TRACE(op);
    const Expr positive = call("add", {call("abs", {x}), make_scalar(0.25f)});
    check_function(function({x}, call(op, {positive})), {.tolerance = 2e-6});
  }
}

TEST(Generic, BroadcastingBinaryOperators) {
  for (std::string_view op : {"add", "subtract", "multiply", "divide", "maximum", "minimum"}) {
    SCOPED_TRACE(op);
    const Expr a = var("a", {2, 32, 9, 9}), b = var("b", {1, 32, 1, 1});
    const Expr c = call("add", {call("abs", {b}), make_scalar(0.5f)});
    check_function(function({a, b}, call(op, {a, c})), {.least_variants = 2});
  }
  const Expr a = var("a", {5, 1, 20}), b = var("b", {7, 20});
  check_function(function({a, b}, call("add", {a, b})));
}

// Scores of a softmax under a mask: an infinity that stands in the code is added to what it hides.
TEST(Generic, InfinitiesInTheCode) {
  const Expr scores = var("scores", {6, 40}), mask = var("mask", {6, 40}, DType::kBool);
  Tensor numbers = Tensor::empty(DType::kFloat32, {6, 40});
  Tensor hidden = Tensor::empty(DType::kBool, {6, 40});
  for (int64_t i = 0; i < numbers.size(); ++i) {
    numbers.data<float>()[i] = static_cast<float>(i % 7) - 3;
    hidden.data<bool>()[i] = i % 3 == 0;
  }
  const Expr infinity = make_scalar(-std::numeric_limits<float>::infinity());
  const Expr masked = call("add", {scores, call("where", {mask, infinity, make_scalar(0.0f)})});
  check_with_inputs(function({scores, mask}, masked), {numbers, hidden}, {.tolerance = 0});
  check_with_inputs(function({scores, mask}, call("exp", {masked})), {numbers, hidden});
  check_with_inputs(function({mask}, call("max", {call("where", {mask, infinity, infinity})},
                                          {{"axis", Ints{1}}, {"keepdims", true}})),
                    {hidden}, {.tolerance = 0});
}

TEST(Generic, NaNInTheCodeAndInTheData) {
  const Expr x = var("x", {64}), mask = var("mask", {64}, DType::kBool);
  Tensor data = Tensor::empty(DType::kFloat32, {64}), hidden = Tensor::empty(DType::kBool, {64});
  for (int64_t i = 0; i < data.size(); ++i) {
    data.data<float>()[i] = i % 5 == 0 ? std::nanf("") : static_cast<float>(i - 30);
    hidden.data<bool>()[i] = i % 4 == 0;
  }
  const Expr low = make_scalar(-8.0f), high = make_scalar(8.0f), nan = make_scalar(std::nanf(""));
  const Expr shown = call("where", {mask, nan, x});
  const Expr within = call("where", {call("greater", {x, high}), high,
                                     call("where", {call("less", {x, low}), low, shown})});
  check_with_inputs(function({x, mask}, within), {data, hidden}, {.tolerance = 0});
}

// What is computed of it is NaN.
TEST(Generic, NaNIsPassedOn) {
  const Expr x = var("x", {4, 40});
  Tensor data = Tensor::empty(DType::kFloat32, {4, 40});
  for (int64_t i = 0; i < data.size(); ++i)
    data.data<float>()[i] = i % 7 == 3 ? std::nanf("") : static_cast<float>(i % 11) - 5;
  for (std::string_view op : {"sigmoid",       "tanh",
                              "exp",           "erf",
                              "abs",           "negative",
                              "ceil",          "floor",
                              "round",         "sqrt",
                              "nn.relu",       "nn.gelu",
                              "nn.silu",       "nn.hard_sigmoid",
                              "nn.hard_swish", "nn.elu",
                              "nn.softsign",   "nn.mish",
                              "nn.leaky_relu", "nn.softmax",
                              "log",           "nn.softplus",
                              "nn.log_softmax"}) {
    SCOPED_TRACE(op);
    check_with_inputs(function({x}, call(op, {x})), {data});
  }
}

TEST(Generic, OfEveryKindOfNumber) {
  const Expr x = var("x", {512});
  Tensor data = Tensor::empty(DType::kFloat32, {512});
  using Limits = std::numeric_limits<float>;
  const std::vector<float> ends{0.0f,
                                -0.0f,
                                -1.0f,
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                Limits::denorm_min(),
                                Limits::min(),
                                Limits::max(),
                                1.0f,
                                std::nextafter(1.0f, 0.0f),
                                std::nextafter(1.0f, 2.0f),
                                std::sqrt(0.5f),
                                std::sqrt(2.0f)};
  for (int64_t i = 0; i < data.size(); ++i)
    data.data<float>()[i] = i < static_cast<int64_t>(ends.size())
                                ? ends[static_cast<size_t>(i)]
                                : std::pow(10.0f, static_cast<float>(i - 256) * 0.15f);
  for (std::string_view op : {"log", "tanh", "sigmoid", "erf"}) {
    SCOPED_TRACE(op);
    check_with_inputs(function({x}, call(op, {x})), {data}, {.tolerance = 1e-6});
  }
}

TEST(Generic, ComparisonsAndWhere) {
  const Expr a = var("a", {40, 20}), b = var("b", {20});
  check_function(
      function({a, b}, call("where", {call("less", {a, b}), a, call("multiply", {b, b})})));
  check_function(function({a, b}, call("greater_equal", {a, b})));
  check_function(function({a}, call("cast", {a}, {{"dtype", DType::kInt64}})));
  const Expr i = var("i", {4, 6}, DType::kInt64);
  check_function(function({i}, call("add", {i, i})));
}

TEST(Generic, ReshapeAndTranspose) {
  const Expr x = var("x", {24, 64});
  const Expr heads = call("transpose", {call("reshape", {x}, {{"newshape", Ints{24, 4, 16}}})},
                          {{"axes", Ints{1, 0, 2}}});
  check_function(function({x}, heads));
  const Expr back = call("reshape", {call("transpose", {heads}, {{"axes", Ints{1, 0, 2}}})},
                         {{"newshape", Ints{24, 64}}});
  check_function(function({x}, call("nn.relu", {back})));
  const Expr y = var("y", {6, 10, 15});
  check_function(function({y}, call("transpose", {call("reshape", {call("tanh", {y})},
                                                       {{"newshape", Ints{4, 15, 15}}})})));
}

TEST(Generic, SlicesPadsAndConcatenations) {
  const Expr a = var("a", {1, 32, 9, 10}), b = var("b", {1, 16, 9, 10});
  for (int64_t axis : {1}) {
    check_function(function({a, b}, call("concatenate", {make_tuple({a, call("nn.relu", {b})})},
                                         {{"axis", axis}})),
                   {.least_variants = 2});
  }
  check_function(function({a, b}, call("nn.relu", {call("concatenate", {make_tuple({a, b})},
                                                        {{"axis", int64_t{1}}})})),
                 {.least_variants = 2});
  const Expr c = var("c", {1, 32, 9, 5});
  check_function(
      function({a, c}, call("concatenate", {make_tuple({a, c})}, {{"axis", int64_t{-1}}})));
  check_function(function({a}, call("strided_slice", {a},
                                    {{"begin", Ints{8, 1}},
                                     {"end", Ints{24, 9}},
                                     {"strides", Ints{1, 2}},
                                     {"axes", Ints{1, 2}}})));
  check_function(function({a}, call("nn.pad", {a, make_scalar(1.5f)},
                                    {{"pad_width", IntLists{{0, 0}, {0, 0}, {1, 2}, {3, 0}}}})),
                 {.least_variants = 2});
  for (std::string mode : {"edge", "reflect"}) {
    check_function(function(
        {a}, call("nn.pad", {a, make_scalar(0.0f)},
                  {{"pad_width", IntLists{{0, 0}, {0, 0}, {1, 2}, {3, 0}}}, {"pad_mode", mode}})));
  }
  check_function(function(
      {a}, call("split", {a}, {{"indices_or_sections", Ints{16, 24}}, {"axis", int64_t{1}}})));
  check_function(
      function({b}, call("stack", {make_tuple({b, call("abs", {b})})}, {{"axis", int64_t{2}}})));
  check_function(function({b}, call("tile", {b}, {{"reps", Ints{1, 2, 1, 2}}})));
  check_function(function({b}, call("nn.depth_to_space", {b}, {{"block_size", int64_t{2}}})));
  check_function(function(
      {b},
      call("broadcast_to",
           {call("strided_slice", {b}, {{"begin", Ints{0}}, {"end", Ints{1}}, {"axes", Ints{3}}})},
           {{"shape", Ints{1, 16, 9, 10}}})));
}

TEST(Generic, Pooling) {
  for (const Shape& shape : {Shape{1, 32, 13, 14}, Shape{2, 20, 9, 9}}) {
    const Expr x = var("x", shape);
    for (auto [size, stride, pad] :
         std::vector<std::array<int64_t, 3>>{{3, 2, 1}, {2, 2, 0}, {3, 1, 1}, {5, 1, 2}}) {
      const Attrs attrs{{"pool_size", Ints{size, size}},
                        {"strides", Ints{stride, stride}},
                        {"padding", Ints{pad, pad, pad, pad}}};
      check_function(function({x}, call("nn.max_pool2d", {x}, attrs)), {.least_variants = 2});
      check_function(
          function({x}, call("add", {call("nn.avg_pool2d", {x}, attrs), make_scalar(1.0f)})),
          {.least_variants = 2});
      Attrs counted = attrs;
      counted.set("count_include_pad", true).set("ceil_mode", true);
      check_function(function({x}, call("nn.avg_pool2d", {x}, counted)));
    }
    check_function(function({x}, call("nn.global_avg_pool2d", {x})), {.least_variants = 2});
    check_function(function({x}, call("nn.global_max_pool2d", {call("nn.relu", {x})})));
  }
}

TEST(Generic, Resizing) {
  const Expr x = var("x", {1, 16, 7, 6});
  auto resize = [&](Ints size, std::string method, std::string mode, std::string rounding) {
    return function({x}, call("image.resize2d", {x},
                              {{"size", size},
                               {"method", method},
                               {"coordinate_transformation_mode", mode},
                               {"rounding_method", rounding}}));
  };
  check_function(resize({14, 12}, "nearest_neighbor", "asymmetric", "floor"),
                 {.least_variants = 2});
  check_function(resize({10, 9}, "nearest_neighbor", "half_pixel", "round_prefer_floor"));
  check_function(resize({14, 12}, "linear", "half_pixel", ""), {.least_variants = 2});
  check_function(resize({5, 9}, "linear", "align_corners", ""));
}

TEST(Generic, Statistics) {
  for (const Shape& shape : {Shape{12, 48}, Shape{3, 5, 200}, Shape{4, 7}, Shape{2, 1000}}) {
    const Expr x = var("x", shape), r = var("r", shape);
    check_function(function({x}, call("nn.softmax", {x})),
                   {.tolerance = 5e-6, .every_width = true});
    check_function(function({x}, call("nn.log_softmax", {x})), {.every_width = true});
    const Expr sum = call("add", {x, r});
    check_function(function({x, r}, call("nn.layer_norm",
                                         {sum, weights({shape.back()}), weights({shape.back()})})),
                   {.every_width = true});
    check_function(function({x}, call("nn.rms_norm", {x, weights({shape.back()})})),
                   {.every_width = true});
    check_function(
        function({x, r},
                 call("nn.softmax", {call("add", {call("multiply", {x, make_scalar(0.5f)}), r})})),
        {.every_width = true});
  }
  const Expr x = var("x", {2, 20, 9, 17});
  check_function(function({x}, call("nn.softmax", {x}, {{"axis", int64_t{1}}})),
                 {.every_width = true});
  for (const Ints& axes : {Ints{2, 3}, Ints{1}, Ints{0, 1, 2, 3}, Ints{3}, Ints{0, 2}}) {
    for (bool keep : {false, true}) {
      for (std::string_view op : {"mean", "sum", "max", "min"}) {
        SCOPED_TRACE(fmt::format("{} over {}", op, shape_to_string(axes)));
        check_function(function({x}, call(op, {x}, {{"axis", axes}, {"keepdims", keep}})),
                       {.every_width = true});
      }
    }
  }
}

TEST(Generic, SharedValuesAndSeveralResults) {
  const Expr x = var("x", {8, 64});
  Expr y = x;
  for (int i = 0; i < 12; ++i) y = call("multiply", {call("sigmoid", {y}), y});
  check_function(function({x}, y));
  const Expr t = call("tanh", {x});
  check_function(function({x}, make_tuple({t, call("add", {t, x})})));
}

TEST(Generic, RefusesWithAReason) {
  const Expr x = var("x", {4, 6}), i = var("i", {3}, DType::kInt64);
  const Expr computed = call("add", {i, i});
  EXPECT_FALSE(
      check_supported(function({x, i}, call("take", {x, computed}, {{"axis", int64_t{0}}}))));
}

// Nothing is read or written of a table where an index that is given at run time is none of it.
TEST(Generic, IndicesOutOfRangeAreErrors) {
  for (const DType dtype : {DType::kInt64, DType::kInt32}) {
    const Expr x = var("x", {4, 6}), i = var("i", {2, 3}, dtype);
    const Expr rows =
        call("take", {x, call("reshape", {i}, {{"newshape", Ints{6}}})}, {{"axis", int64_t{0}}});
    const Function lookup = function({x, i}, call("nn.relu", {rows}));
    const auto indices = [dtype](std::vector<int64_t> values) {
      Tensor tensor = Tensor::from<int64_t>({2, 3}, values);
      return dtype == DType::kInt64
                 ? tensor
                 : Tensor::from<int32_t>({2, 3},
                                         std::vector<int32_t>(values.begin(), values.end()));
    };
    const Tensor table = Tensor::zeros(DType::kFloat32, {4, 6});
    check_with_inputs(lookup, {table, indices({0, 3, -1, -4, 2, 2})});
    const auto backend = make_native_backend();
    const Variant variant = backend->variants(lookup, {"native", {}, {}}, {2, ""}).value().at(0);
    const auto kernel = backend->compile(lookup, variant, {"native", {}, {}}, {2, ""}).value();
    for (const int64_t bad : {4, -5, 1 << 30}) {
      const Tensor given = indices({0, 1, 2, 3, 3, bad});
      std::vector<float> result(36, 7.0f);
      void* const inputs[] = {const_cast<void*>(table.raw()), const_cast<void*>(given.raw())};
      void* const outputs[] = {result.data()};
      const Status status = kernel->run({inputs, outputs, nullptr});
      EXPECT_EQ(status.code(), ErrorCode::kBadModel) << status.to_string();
      EXPECT_THAT(status.message(), ::testing::HasSubstr("is out of range for extent 4"));
      EXPECT_THAT(result, ::testing::Each(7.0f));
    }
  }
}

// What 32 bits address, counted in bytes.
TEST(Generic, SizesOfArraysHaveALimit) {
  const auto doubled = [](int64_t size, DType dtype) {
    const Expr x = var("x", {size}, dtype);
    return function({x}, call("maximum", {x, x}));
  };
  constexpr int64_t kGigabyte = 1 << 30;
  EXPECT_TRUE(check_supported(doubled(kGigabyte, DType::kUInt8)));
  EXPECT_TRUE(check_supported(doubled(kGigabyte / 4, DType::kFloat32)));
  EXPECT_FALSE(check_supported(doubled(kGigabyte / 4, DType::kInt64)));
  EXPECT_FALSE(check_supported(doubled(kGigabyte / 2, DType::kFloat32)));
  const auto converted = [](const Shape& shape) {
    const Encoding plain{DType::kFloat32, {}, {}};
    const Encoding blocked{DType::kFloat32, Layout::channels_blocked(4, 16), {}};
    return make_native_backend()
        ->compile_conversion({shape, DType::kFloat32}, plain, blocked, CompileOptions{2, ""})
        .status();
  };
  EXPECT_TRUE(converted({1, 3, 16, 16}).ok());
  EXPECT_EQ(converted({1, 3, 1 << 13, 1 << 13}).code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace collage::native
