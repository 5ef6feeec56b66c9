// Pooling against loops over whole windows; padding and resizing on values worked out by hand.
#include "ops/window.h"

#include <cmath>

#include "op_test.h"
#include "ops/cases.h"
#include "ops/resize.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

std::vector<double> naive_pool(const Tensor& x, const Attrs& attrs, const Shape& out,
                               bool average) {
  const size_t spatial = out.size() - 2;
  const Ints &strides = attrs.ints("strides"), &padding = attrs.ints("padding");
  std::vector<double> y;
  for (Index p(out); p; ++p) {
    double sum = 0, largest = -INFINITY, count = 0, with_padding = 0;
    for (Index k(attrs.ints("pool_size")); k; ++k) {
      Shape from = {p[0], p[1]};
      bool inside = true, padded = true;
      for (size_t d = 0; d < spatial; ++d) {
        int64_t i = p[d + 2] * strides[d] - padding[d] + k[d] * attrs.ints("dilation")[d];
        from.push_back(i);
        inside = inside && i >= 0 && i < x.shape()[d + 2];
        padded = padded && i < x.shape()[d + 2] + padding[spatial + d];
      }
      with_padding += padded;
      if (!inside) continue;
      ++count;
      sum += static_cast<double>(at(x, from));
      largest = std::max(largest, static_cast<double>(at(x, from)));
    }
    y.push_back(!average ? largest
                         : sum / (attrs.flag("count_include_pad") ? with_padding : count));
  }
  return y;
}

TEST(PoolTest, AgreesWithTheDefinition) {
  register_all_ops();
  int checked = 0;
  for (const OpCase& c : op_cases()) {
    if (c.op.rfind("nn.max_pool", 0) != 0 && c.op.rfind("nn.avg_pool", 0) != 0) continue;
    SCOPED_TRACE(c.to_string());
    Tensor x = random_tensor(c.args[0].type, 1);
    Result<Expr> call = try_call(c.op, {c.args[0].type}, c.attrs);
    ASSERT_TRUE(call.ok()) << call.status().to_string();
    expect_near(run(c.op, {x}, c.attrs),
                naive_pool(x, as<CallNode>(*call)->attrs, (*call)->tensor_type().shape,
                           c.op.rfind("nn.avg", 0) == 0));
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

TEST(PoolTest, ANanInAWindowIsItsMaximumAndItsMean) {
  const Tensor x = floats({1, 1, 6}, {1, NAN, 3, 4, 9, 5});
  for (const char* op : {"nn.max_pool1d", "nn.avg_pool1d"}) {
    const Tensor y = run(op, {x}, {{"pool_size", Ints{2}}, {"strides", Ints{1}}});
    ASSERT_EQ(y.size(), 5);
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(std::isnan(y.data<float>()[i]), i < 2) << op << " " << i;
  }
  EXPECT_TRUE(std::isnan(run("nn.global_max_pool1d", {x}).data<float>()[0]));
}

TEST(PoolTest, CeilModeAddsAPartialWindowButNoneInThePaddingAlone) {
  auto extent = [](int64_t input, int64_t size, int64_t stride, Ints padding) {
    auto call = try_call("nn.max_pool1d", {{{1, 1, input}, DType::kFloat32}},
                         {{"pool_size", Ints{size}},
                          {"strides", Ints{stride}},
                          {"padding", std::move(padding)},
                          {"ceil_mode", true}});
    return (*call)->tensor_type().shape[2];
  };
  EXPECT_EQ(extent(6, 3, 2, {0, 0}), 3);
  EXPECT_EQ(extent(5, 3, 2, {0, 0}), 2);
  EXPECT_EQ(extent(4, 2, 3, {0, 1}), 2);
  EXPECT_EQ(extent(3, 2, 3, {0, 2}), 1);  // a second window would start at 3, past the input
}

TEST(PoolTest, GlobalForms) {
  Tensor x = floats({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -6});
  Tensor mean = run("nn.global_avg_pool2d", {x});
  EXPECT_EQ(mean.shape(), (Shape{1, 2, 1, 1}));
  EXPECT_THAT(mean.values<float>(), ElementsAre(3, -3));
  EXPECT_THAT(run("nn.global_max_pool2d", {x}).values<float>(), ElementsAre(6, -1));
}

TEST(WindowTest, SeesOnlyPadding) {
  int found = 0;
  for (int64_t extent = 1; extent <= 4; ++extent)
    for (int64_t kernel = 1; kernel <= 3; ++kernel)
      for (int64_t step = 1; step <= 5; ++step)
        for (int64_t stride = 1; stride <= 3; ++stride)
          for (int64_t pad = 0; pad <= 4; ++pad)
            for (int64_t positions = 0; positions <= 5; ++positions) {
              const Window window{{kernel}, {stride}, {step}, {pad}, {pad}};
              bool expected = false;
              for (int64_t i = 0; i < positions; ++i) {
                bool inside = false;
                for (int64_t k = 0; k < kernel; ++k) {
                  const int64_t at = i * stride - pad + k * step;
                  inside = inside || (at >= 0 && at < extent);
                }
                expected = expected || !inside;
              }
              EXPECT_EQ(sees_only_padding(window, 0, extent, positions), expected)
                  << extent << kernel << step << stride << pad << positions;
              found += expected;
            }
  EXPECT_GT(found, 100);
}

TEST(PadTest, Modes) {
  Tensor x = floats({3}, {1, 2, 3}), zero = floats({}, {0});
  auto pad = [&](int64_t before, int64_t after, const char* mode) {
    return floats_of(
        run("nn.pad", {x, zero},
            {{"pad_width", IntLists{{before, after}}}, {"pad_mode", std::string(mode)}}));
  };
  EXPECT_THAT(pad(2, 1, "constant"), ElementsAre(0, 0, 1, 2, 3, 0));
  EXPECT_THAT(pad(-1, 2, "constant"), ElementsAre(2, 3, 0, 0));
  EXPECT_THAT(pad(2, 1, "edge"), ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(pad(2, 4, "reflect"), ElementsAre(3, 2, 1, 2, 3, 2, 1, 2, 3));
  EXPECT_THAT(pad(4, 2, "wrap"), ElementsAre(3, 1, 2, 3, 1, 2, 3, 1, 2));
}

TEST(PadTest, TwoDimensionsAndAValue) {
  Tensor y = run("nn.pad", {floats({1, 2}, {1, 2}), floats({}, {9})},
                 {{"pad_width", IntLists{{1, 0}, {0, 1}}}});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.values<float>(), ElementsAre(9, 9, 9, 1, 2, 9));
}

std::vector<float> resize(std::vector<float> x, int64_t size, Attrs attrs) {
  const auto n = static_cast<int64_t>(x.size());
  attrs.set("size", Ints{size});
  return floats_of(run("image.resize1d", {floats({1, 1, n}, x)}, std::move(attrs)));
}

TEST(ResizeTest, Nearest) {
  auto nearest = [](std::string mode, std::string rounding) -> Attrs {
    return {{"method", std::string("nearest_neighbor")},
            {"coordinate_transformation_mode", std::move(mode)},
            {"rounding_method", std::move(rounding)}};
  };
  EXPECT_THAT(resize({1, 2, 3}, 6, nearest("asymmetric", "floor")), ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_THAT(resize({1, 2, 3, 4}, 2, nearest("half_pixel", "round_prefer_floor")),
              ElementsAre(1, 3));
  EXPECT_THAT(resize({1, 2, 3, 4}, 2, nearest("half_pixel", "round_prefer_ceil")),
              ElementsAre(2, 4));
  EXPECT_THAT(resize({1, 2, 3, 4}, 3, nearest("align_corners", "ceil")), ElementsAre(1, 3, 4));
}

TEST(ResizeTest, KnowsWhatRepeatsPixels) {
  register_all_ops();
  const auto factors = [](Shape from, Ints size, std::string mode, std::string rounding,
                          std::string method = "nearest_neighbor") {
    const Expr x = make_var("x", TensorType{std::move(from), DType::kFloat32});
    const Expr y = make_call("image.resize2d", {x},
                             {{"size", std::move(size)},
                              {"method", std::move(method)},
                              {"coordinate_transformation_mode", std::move(mode)},
                              {"rounding_method", std::move(rounding)}})
                       .value();
    return repeat_factors(*as<CallNode>(y));
  };
  EXPECT_EQ(factors({1, 1, 3, 4}, {6, 4}, "asymmetric", "floor"), (Ints{2, 1}));
  EXPECT_EQ(factors({1, 1, 3, 4}, {6, 12}, "half_pixel", "round_prefer_floor"), (Ints{2, 3}));
  EXPECT_EQ(factors({1, 1, 3, 4}, {6, 8}, "asymmetric", "ceil"), std::nullopt);
  EXPECT_EQ(factors({1, 1, 3, 4}, {7, 8}, "asymmetric", "floor"), std::nullopt);
  EXPECT_EQ(factors({1, 1, 4, 4}, {2, 4}, "asymmetric", "floor"), std::nullopt);
  EXPECT_EQ(factors({1, 1, 3, 4}, {6, 8}, "half_pixel", "floor", "linear"), std::nullopt);
  EXPECT_EQ(repeat_factors(*as<CallNode>(
                make_call("nn.relu", {make_var("x", TensorType{{1, 1, 3, 4}, DType::kFloat32})}, {})
                    .value())),
            std::nullopt);
}

TEST(ResizeTest, Linear) {
  auto linear = [](std::string mode) -> Attrs {
    return {{"method", std::string("linear")}, {"coordinate_transformation_mode", std::move(mode)}};
  };
  EXPECT_THAT(resize({0, 4}, 4, linear("half_pixel")), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(resize({0, 4}, 3, linear("align_corners")), ElementsAre(0, 2, 4));
  EXPECT_THAT(resize({0, 4}, 4, linear("asymmetric")), ElementsAre(0, 2, 4, 4));
  EXPECT_THAT(resize({2, 4, 6}, 1, linear("pytorch_half_pixel")), ElementsAre(2));
}

TEST(ResizeTest, CubicKeepsALineAndItsOwnSamples) {
  Attrs cubic = {{"method", std::string("cubic")},
                 {"coordinate_transformation_mode", std::string("asymmetric")},
                 {"cubic_alpha", -0.5}};
  // With alpha -0.5 the kernel reproduces straight lines away from the borders.
  std::vector<float> y = resize({0, 1, 2, 3, 4, 5}, 12, cubic);
  for (size_t i = 2; i < 9; ++i) EXPECT_NEAR(y[i], static_cast<float>(i) / 2, 1e-6) << i;
  cubic.set("cubic_alpha", -0.75);
  // Halfway between samples: weights -3/32, 19/32, 19/32, -3/32.
  EXPECT_NEAR(resize({0, 0, 1, 0, 0, 0}, 12, cubic)[3], 19.0 / 32, 1e-6);
}

TEST(ResizeTest, AntialiasAveragesWhenShrinking) {
  Attrs attrs = {{"method", std::string("linear")}, {"antialias", true}};
  std::vector<float> y = resize({1, 1, 1, 1, 5, 5, 5, 5}, 2, attrs);
  EXPECT_NEAR(y[0] + y[1], 6, 1e-6);
  EXPECT_GT(y[0], 1);  // its filter reaches the other half
}

TEST(ResizeTest, CropExtrapolates) {
  Attrs attrs = {{"method", std::string("linear")},
                 {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                 {"roi", std::vector<double>{0.5, 1.5}},
                 {"extrapolation_value", 10.0}};
  EXPECT_THAT(resize({0, 1, 2, 3, 4}, 3, attrs), ElementsAre(2, 4, 10));
}

TEST(ResizeTest, AxesAreIndependent) {
  Tensor x = random({2, 3, 4, 5}, 1);
  Attrs attrs = {{"size", Ints{6, 7}}};
  Tensor both = run("image.resize2d", {x}, attrs);
  Tensor rows = run("image.resize2d", {x}, {{"size", Ints{6, 5}}});
  Tensor then_columns = run("image.resize2d", {rows}, {{"size", Ints{6, 7}}});
  for (int64_t i = 0; i < both.size(); ++i)
    ASSERT_NEAR(both.data<float>()[i], then_columns.data<float>()[i], 1e-6);
}

}  // namespace
}  // namespace collage
