// Stages that read across rows compute square tiles, with copies of what they read that lie along
// the rows; whole tiles and the rests of axes, behind and before other operators, and conversions.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "backend/check.h"
#include "backend/native/called_program.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/native_backend.h"
#include "backend/native/stages/stage_schedule.h"
#include "check.h"

namespace collage::native {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string scheduled_text(const Function& function) {
  const auto program = with_schedule(tensor_program::plan_stages(emitted_stages(function).value()),
                                     StageSchedule(), 2);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return program->to_string();
}

Expr transpose(const Expr& x, Ints axes) { return call("transpose", {x}, {{"axes", axes}}); }

TEST(TransposedTiles, AreCopiedAlongTheirRows) {
  const Expr x = var("x", {40, 33});
  const std::string text = scheduled_text(function({x}, transpose(x, {1, 0})));
  EXPECT_THAT(text, HasSubstr("stage y0_rows0[i1:40, i0:33] = p0[i1, i0];"));
  EXPECT_THAT(text, HasSubstr("result y0[i0:33, i1:40] = y0_rows0[i1, i0];"));
  EXPECT_THAT(text, HasSubstr("y0_rows0.compute_at(y0, "));
}

TEST(TransposedTiles, OnlyWhereRowsAreReadAcross) {
  const Expr x = var("x", {40, 48}), small = var("small", {5, 48});
  const Expr bytes = var("bytes", {40, 48}, DType::kUInt8);
  for (const Function& f :
       {function({x}, call("nn.relu", {x})),           // along them
        function({small}, transpose(small, {1, 0})),   // rows shorter than a tile
        function({bytes}, transpose(bytes, {1, 0}))})  // numbers of another size
    EXPECT_THAT(scheduled_text(f), Not(HasSubstr("_rows")));
}

TEST(TransposedTiles, MoveEveryElementToItsPlace) {
  for (const auto& [shape, axes] :
       std::vector<std::pair<Shape, Ints>>{{{32, 64}, {1, 0}},
                                           {{37, 45}, {1, 0}},
                                           {{16, 131}, {1, 0}},
                                           {{2, 33, 7, 40}, {0, 3, 2, 1}},
                                           {{2, 20, 9, 40}, {0, 2, 3, 1}},
                                           {{3, 70, 50}, {0, 2, 1}}}) {
    SCOPED_TRACE(shape_to_string(shape));
    const Expr x = var("x", shape), i = var("i", shape, DType::kInt32);
    const Function f = function({x}, transpose(x, axes));
    EXPECT_THAT(scheduled_text(f), HasSubstr("_rows0"));
    check_function(f, {.tolerance = 0, .every_width = true});
    check_function(function({i}, transpose(i, axes)), {.tolerance = 0, .integers = true});
  }
}

TEST(TransposedTiles, AreWhatOtherOperatorsComputeWith) {
  const Expr a = var("a", {50, 34}), b = var("b", {34, 50}), c = var("c", {50, 34});
  const Expr sum = call("add", {transpose(a, {1, 0}), b});
  check_function(function({a, b}, call("exp", {sum})), {.every_width = true});
  const Function two = function({a, b, c}, call("multiply", {sum, transpose(c, {1, 0})}));
  EXPECT_THAT(scheduled_text(two), HasSubstr("_rows1"));
  check_function(two, {.every_width = true});
  // Rows from the third number on.
  const Expr part = call("strided_slice", {a}, {{"begin", Ints{0, 2}}, {"end", Ints{50, 34}}});
  check_function(function({a}, transpose(part, {1, 0})), {.tolerance = 0, .every_width = true});
}

TEST(TransposedTiles, ConvertBetweenPlainAndBlockedChannels) {
  const std::unique_ptr<Backend> backend = make_native_backend();
  const Layout plain, blocked = Layout::channels_blocked(4, 16);
  for (const int64_t channels : {16, 48, 20})
    for (const auto& [from, to] : {std::pair(plain, blocked), std::pair(blocked, plain)}) {
      SCOPED_TRACE(
          fmt::format("{} channels, {} to {}", channels, from.to_string(), to.to_string()));
      const Expr x = var("x", {2, channels, 5, 9});
      const Function identity = function({x}, x);
      Variant variant = Variant::plain("", identity);
      variant.inputs[0].layout = from;
      variant.outputs[0].layout = to;
      auto kernel = backend->compile_conversion(x->tensor_type(), variant.inputs[0],
                                                variant.outputs[0], CompileOptions{2, ""});
      ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
      Tensor data = Tensor::empty(DType::kFloat32, x->tensor_type().shape);
      for (int64_t i = 0; i < data.size(); ++i) data.data<float>()[i] = static_cast<float>(i);
      const auto got = testing::run_guarded(**kernel, identity, variant, {data});
      ASSERT_EQ(got.size(), 1U);
      EXPECT_EQ(std::memcmp(got[0].raw(), data.raw(), data.bytes()), 0);
    }
}

}  // namespace
}  // namespace collage::native
