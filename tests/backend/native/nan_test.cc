// What reduces by the largest or the least keeps NaN, by vectors of either width and by their
// rests, over rows, columns and windows.
#include <algorithm>
#include <limits>

#include "backend/check.h"
#include "backend/far_places.h"
#include "backend/native/native_backend.h"
#include "check.h"

namespace collage::native {
namespace {

/// Numbers, some of them infinite, with NaN of both signs every `every` elements.
Tensor numbers_with_nan(Shape shape, int64_t every) {
  Tensor tensor = testing::random_tensor(std::move(shape), 3);
  float* x = tensor.data<float>();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (i % every == every / 2) x[i] = std::numeric_limits<float>::quiet_NaN();
    if (i % every == every - 1) x[i] = -std::numeric_limits<float>::quiet_NaN();
    if (i % 97 == 0) x[i] = i % 2 == 0 ? HUGE_VALF : -HUGE_VALF;
  }
  return tensor;
}

void check(const Expr& result, const std::vector<Expr>& params, int64_t every) {
  std::vector<Tensor> inputs;
  for (const Expr& param : params)
    inputs.push_back(numbers_with_nan(param->tensor_type().shape, every++));
  check_with_inputs(function(params, result), inputs, {.every_width = true});
}

TEST(Nan, StaysInTheLargestAndTheLeast) {
  for (const char* op : {"max", "min"})
    for (const Shape& shape : {Shape{5, 200}, Shape{40, 37}, Shape{3, 7, 16}, Shape{9, 5}})
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
        SCOPED_TRACE(fmt::format("{} of {} along {}", op, shape_to_string(shape), axis));
        const Expr x = var("x", shape);
        check(call(op, {x}, {{"axis", Ints{axis}}}), {x}, 61);
      }
}

TEST(Nan, StaysInWindows) {
  const Expr x = var("x", {1, 16, 13, 19});
  const Attrs window = {
      {"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints(4, 1)}};
  check(call("nn.max_pool2d", {x}, window), {x}, 83);
  check(call("nn.global_max_pool2d", {x}), {x}, 500);
}

// Windows whose rows come first, with pads that no row or column fills whole.
TEST(Nan, StaysInLargeWindows) {
  const Expr x = var("x", {1, 18, 21, 19}), volume = var("volume", {1, 3, 9, 8, 17});
  for (const Attrs& window : std::vector<Attrs>{
           {{"pool_size", Ints{13, 13}}, {"padding", Ints(4, 6)}},
           {{"pool_size", Ints{9, 5}}, {"strides", Ints{2, 3}}, {"padding", Ints{4, 0, 2, 1}}},
           {{"pool_size", Ints{5, 5}}, {"dilation", Ints{2, 3}}, {"padding", Ints{3, 4, 2, 5}}},
           {{"pool_size", Ints{5, 5}}}})
    check(call("nn.max_pool2d", {x}, window), {x}, 211);
  check(call("nn.max_pool3d", {volume}, {{"pool_size", Ints{3, 4, 5}}, {"padding", Ints(6, 1)}}),
        {volume}, 83);
}

// And infinities, next to which numbers become 0.
TEST(Nan, StaysAmongItsNeighbouringChannels) {
  for (const Shape& shape : {Shape{1, 24, 5, 7}, Shape{2, 6, 40}, Shape{3, 33}})
    for (const double beta : {0.75, 0.5, 1.0, 0.6})
      for (const double alpha : {1.5, -0.1}) {
        SCOPED_TRACE(fmt::format("{}, beta {}, alpha {}", shape_to_string(shape), beta, alpha));
        const Expr x = var("x", shape);
        check(call("nn.lrn", {x}, {{"size", int64_t{5}}, {"alpha", alpha}, {"beta", beta}}), {x},
              61);
      }
}

// Products of the same kernel, which a compiler may take for numbers.
TEST(Nan, StaysInTheLargestOfWhatIsComputedThere) {
  const Expr x = var("x", {6, 130}), y = var("y", {6, 130});
  const Expr product = call("multiply", {call("add", {x, y}), y});
  check(call("max", {product}, {{"axis", Ints{1}}}), {x, y}, 61);
  check(call("max", {product}, {{"axis", Ints{0}}}), {x, y}, 61);
  check(call("maximum", {product, x}), {x, y}, 61);
}

// Groups of 4 channels are computed 16 channels at a time, the others' times 0.
TEST(Nan, StaysInItsGroupWhereGroupsAreNotJoined) {
  const auto grouped = [](int64_t channels, int64_t groups) {
    const Expr x = var("x", {1, channels, 12, 12});
    return function({x}, call("nn.conv2d", {x, weights({channels, channels / groups, 3, 3})},
                              {{"padding", Ints(4, 1)}, {"groups", groups}}));
  };
  const auto marked = [](const Function& f) {
    const auto variants =
        make_native_backend()->variants(f, Target{"native", {}, {}}, CompileOptions{2, ""});
    EXPECT_TRUE(variants.ok()) << variants.status().to_string();
    return std::count_if(variants->begin(), variants->end(),
                         [](const Variant& variant) { return variant.spreads_nan; });
  };
  for (const auto& [channels, groups] : {std::pair{64, 2}, std::pair{48, 3}, std::pair{36, 6}}) {
    SCOPED_TRACE(fmt::format("{} channels in {} groups", channels, groups));
    const Function f = grouped(channels, groups);
    EXPECT_EQ(marked(f), 0);
    check_with_inputs(f, {numbers_with_nan(f->params[0]->tensor_type().shape, 1000)});
  }
  EXPECT_GT(marked(grouped(32, 8)), 0);
}

TEST(Nan, PlacesBetweenPixelsMayBeAnything) {
  for (const testing::FarPlaces& c : testing::far_places()) {
    SCOPED_TRACE(c.name);
    check_with_inputs(c.function, c.inputs, {.every_width = true});
  }
}

}  // namespace
}  // namespace collage::native
