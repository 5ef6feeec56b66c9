// Convolutions, alone and with prologues and epilogues, in every layout offered; what register
// tiles schedules have.
#include "backend/native/templates/conv_schedules.h"
#include "backend/native/templates/register_tile.h"
#include "base/integers.h"
#include "check.h"

namespace collage::native {
namespace {

struct ConvCase {
  const char* name;
  Shape data;
  int64_t out_channels;
  Ints kernel, strides, padding, dilation;
  int64_t groups;
};

Expr conv(const Expr& data, const ConvCase& c, bool integers = false) {
  Shape weight{c.out_channels, c.data[1] / c.groups};
  weight.insert(weight.end(), c.kernel.begin(), c.kernel.end());
  return call("nn.conv" + std::to_string(c.kernel.size()) + "d", {data, weights(weight, integers)},
              {{"strides", c.strides},
               {"padding", c.padding},
               {"dilation", c.dilation},
               {"groups", c.groups}});
}

/// Accumulators, the weights that they are multiplied by and a row's number; AVX-512 reads that
/// from memory.
int registers_needed(int blocks, int rows, bool avx512) {
  return avx512 ? blocks * rows + blocks : 2 * (blocks * rows + blocks) + 1;
}

TEST(RegisterTile, FitsTheRegisters) {
  for (const bool avx512 : {false, true})
    for (const int blocks : {1, 2, 3, 4, 6}) {
      const int most = most_rows(blocks, avx512), all = avx512 ? 32 : 16;
      ASSERT_GE(most, 1);
      // A single row needs no registers for weights, which it multiplies once.
      if (most > 1) {
        EXPECT_LE(registers_needed(blocks, most, avx512), all) << blocks;
      }
      if (!avx512) {
        EXPECT_GT(registers_needed(blocks, most + 1, avx512), all) << blocks;
      }
    }
  EXPECT_EQ(most_rows(1, true), 28);
  EXPECT_EQ(most_rows(1, false), 6);
  EXPECT_LT(tile_cost(1, 6, false), tile_cost(1, 2, false));
}

TEST(RegisterTile, OfConvolutions) {
  ConvProblem p;
  p.shape.in_channels = p.shape.out_channels = 64;
  p.shape.in = p.shape.out = {1, 56, 56};
  p.shape.kernel = {1, 3, 3};
  p.shape.pad = {0, 1, 1};
  for (const bool avx512 : {false, true}) {
    const std::vector<ConvSchedule> found = conv_schedules(p, 2, avx512);
    ASSERT_FALSE(found.empty());
    for (const ConvSchedule& s : found)
      EXPECT_LE(registers_needed(s.k_tile, s.x_tile * s.y_tile, avx512), avx512 ? 32 : 16)
          << s.to_string();
  }
}

TEST(ConvolutionTasks, OfAMapOfOneRowAreEquallyManyForEachThread) {
  ConvProblem p;
  p.shape.in_channels = 144;
  p.shape.out_channels = 24;
  for (const auto& [pixels, tasks] : {std::pair<int64_t, int64_t>{3136, 8}, {196, 14}}) {
    p.shape.in = p.shape.out = {1, 1, pixels};
    const ConvSchedule s = conv_schedules(p, 2, true).at(0);
    EXPECT_EQ(s.split, ConvSchedule::Split::kRows);
    EXPECT_EQ(ceil_div(pixels, int64_t{s.x_tile} * s.strip), tasks) << s.to_string();
  }
}

TEST(ConvolutionTasks, ComputeNoPixelOfAnothers) {
  ConvProblem p;
  p.shape.in_channels = 144;
  p.shape.out_channels = 24;
  for (int64_t pixels = 1; pixels < 500; ++pixels) {
    p.shape.in = p.shape.out = {1, 1, pixels};
    for (const ConvSchedule& s : conv_schedules(p, 2, true)) {
      if (s.split != ConvSchedule::Split::kRows || pixels % s.x_tile == 0) continue;
      const int64_t tiles = ceil_div(pixels, int64_t{s.x_tile});
      const int64_t last = tiles - (ceil_div(tiles, int64_t{s.strip}) - 1) * s.strip;
      EXPECT_TRUE(last > 1 || tiles == 1) << pixels << " " << s.to_string();
    }
  }
}

class ConvolutionTest : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ConvolutionTest, MatchesTheReference) {
  const ConvCase& c = GetParam();
  const Expr x = var("x", c.data);
  check_function(function({x}, conv(x, c, true)), {.integers = true});
}

TEST_P(ConvolutionTest, WithBiasResidualAndActivation) {
  const ConvCase& c = GetParam();
  const Expr x = var("x", c.data);
  const Expr y = call("nn.bias_add", {conv(x, c), weights({c.out_channels})});
  const Expr r = var("r", y->tensor_type().shape);
  check_function(function({x, r}, call("nn.relu", {call("add", {y, r})})));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionTest,
    ::testing::Values(
        ConvCase{"odd", {1, 33, 13, 11}, 47, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
        ConvCase{"stride", {2, 32, 15, 15}, 64, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1},
        ConvCase{"pointwise", {1, 48, 7, 7}, 40, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
        ConvCase{"pointwise_batch", {3, 32, 5, 6}, 64, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
        ConvCase{"pointwise_stride", {1, 64, 15, 15}, 48, {1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1},
        ConvCase{"stem", {1, 3, 35, 35}, 32, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1},
        ConvCase{
            "asymmetric_padding", {1, 16, 12, 12}, 16, {3, 3}, {2, 2}, {0, 0, 1, 1}, {1, 1}, 1},
        ConvCase{"dilated", {1, 16, 17, 17}, 32, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 1},
        ConvCase{"rectangular", {1, 16, 9, 20}, 24, {1, 7}, {1, 1}, {0, 3, 0, 3}, {1, 1}, 1},
        ConvCase{"to_three", {1, 24, 40, 40}, 3, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
        ConvCase{"narrow_groups", {1, 32, 14, 14}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8},
        ConvCase{"wide_groups", {1, 64, 10, 10}, 64, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2},
        ConvCase{"uneven_groups", {1, 12, 20, 20}, 18, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
        ConvCase{"depthwise", {1, 19, 13, 14}, 19, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 19},
        ConvCase{"depthwise_stride", {2, 32, 15, 15}, 32, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}, 32},
        ConvCase{"depthwise_wide", {1, 32, 11, 37}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 32},
        ConvCase{"depthwise_uneven", {1, 48, 18, 31}, 48, {5, 5}, {2, 2}, {1, 2, 2, 1}, {1, 1}, 48},
        ConvCase{"depthwise_dilated", {1, 16, 9, 9}, 16, {7, 7}, {1, 1}, {6, 6, 6, 6}, {2, 2}, 16},
        ConvCase{"depthwise_mostly_outside",
                 {1, 16, 2, 3},
                 16,
                 {5, 5},
                 {1, 1},
                 {2, 2, 2, 2},
                 {1, 1},
                 16},
        ConvCase{"depthwise_volume",
                 {1, 16, 3, 9, 9},
                 16,
                 {3, 3, 3},
                 {1, 1, 1},
                 {1, 1, 1, 1, 1, 1},
                 {1, 1, 1},
                 16},
        ConvCase{"half_blocks", {1, 40, 9, 9}, 24, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
        ConvCase{"quarter_blocks", {1, 20, 9, 9}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
        ConvCase{"half_a_block", {1, 8, 9, 9}, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1},
        ConvCase{"multiplier", {1, 8, 18, 18}, 16, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8},
        ConvCase{"heavy_pointwise", {1, 512, 7, 7}, 520, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
        ConvCase{"heavy", {2, 192, 5, 6}, 176, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
        ConvCase{"one_pixel", {1, 64, 1, 1}, 48, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
        ConvCase{"one_dimension", {2, 20, 50}, 36, {5}, {1}, {2, 2}, {1}, 1},
        ConvCase{
            "volume", {1, 16, 3, 9, 9}, 32, {3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1},
        ConvCase{"flat_volume",
                 {1, 32, 1, 7, 7},
                 32,
                 {3, 3, 3},
                 {1, 1, 1},
                 {1, 1, 1, 1, 1, 1},
                 {1, 1, 1},
                 1},
        ConvCase{"volume_stride",
                 {1, 32, 4, 9, 9},
                 16,
                 {3, 3, 3},
                 {2, 2, 2},
                 {1, 1, 1, 1, 1, 1},
                 {1, 1, 1},
                 1}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ConvolutionFusion, EveryActivation) {
  const ConvCase c{"", {1, 16, 10, 10}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  for (std::string_view op : {"sigmoid", "tanh", "nn.silu", "nn.gelu", "nn.hard_swish",
                              "nn.leaky_relu", "nn.mish", "nn.elu"}) {
    const Expr x = var("x", c.data);
    check_function(function({x}, call(op, {conv(x, c)})));
  }
  const Expr x = var("x", c.data);
  check_function(function({x}, call("clip", {conv(x, c)}, {{"a_min", 0.0}, {"a_max", 6.0}})));
}

TEST(ConvolutionFusion, UpsamplingInFront) {
  const ConvCase c{"", {1, 32, 16, 16}, 16, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  const Expr x = var("x", {1, 32, 8, 8});
  const Expr up = call("image.resize2d", {x},
                       {{"size", Ints{16, 16}},
                        {"method", std::string("nearest_neighbor")},
                        {"coordinate_transformation_mode", std::string("asymmetric")},
                        {"rounding_method", std::string("floor")}});
  check_function(function({x}, call("nn.relu", {conv(up, c)})),
                 {.least_variants = 2, .every_width = true});
}

TEST(ConvolutionFusion, PhasesOfAnEnlargedImage) {
  for (const Shape& small : {Shape{1, 16, 9, 14}, Shape{2, 20, 7, 5}}) {
    const ConvCase c{"",     {small[0], small[1], 2 * small[2], 2 * small[3]},
                     24,     {3, 3},
                     {1, 1}, {1, 1, 1, 1},
                     {1, 1}, 1};
    const Expr x = var("x", small), r = var("r", {small[0], 24, 2 * small[2], 2 * small[3]});
    const Expr up = call("image.resize2d", {x},
                         {{"size", Ints{2 * small[2], 2 * small[3]}},
                          {"method", std::string("nearest_neighbor")},
                          {"coordinate_transformation_mode", std::string("half_pixel")},
                          {"rounding_method", std::string("round_prefer_floor")}});
    check_function(function({x}, conv(up, c, true)), {.least_variants = 3, .integers = true});
    check_function(function({x, r}, call("nn.relu", {call("add", {conv(up, c), r})})),
                   {.least_variants = 3});
  }
}

TEST(ConvolutionFusion, ConcatenationInFront) {
  const ConvCase c{"", {1, 48, 9, 9}, 32, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1};
  const Expr a = var("a", {1, 16, 9, 9}), b = var("b", {1, 32, 9, 9});
  check_function(
      function({a, b}, conv(call("concatenate", {make_tuple({a, b})}, {{"axis", int64_t{1}}}), c)));
}

TEST(ConvolutionFusion, ResidualOfItsOwnInput) {
  const ConvCase c{"", {1, 32, 9, 9}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  const Expr x = var("x", c.data);
  check_function(function({x}, call("add", {conv(x, c), x})), {.every_width = true});
}

TEST(ConvolutionFusion, ScalesAndBroadcastOperands) {
  const ConvCase c{"", {2, 16, 6, 6}, 32, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1};
  const Expr x = var("x", c.data), s = var("s", {2, 32, 1, 1});
  check_function(
      function({x, s}, call("multiply", {call("add", {conv(x, c), weights({1, 32, 1, 1})}), s})));
}

}  // namespace
}  // namespace collage::native
