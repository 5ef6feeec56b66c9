// What native compiles is a tensor program: a generic kernel's stages and schedule are data that
// print, parse and compute like any other program.
#include <gmock/gmock.h>

#include "backend/native/called_program.h"
#include "backend/native/stages/stage_schedule.h"
#include "check.h"
#include "ops/interpreter.h"
#include "tensor_program/evaluate.h"
#include "tensor_program/program_text.h"

namespace collage::native {
namespace {

using ::testing::HasSubstr;

tensor_program::Program program_of(const Function& function) {
  const StageSchedule schedule =
      parse_stage_schedule(variants_of(function, kStages)[0].name).value();
  return with_schedule(tensor_program::plan_stages(emitted_stages(function).value()), schedule, 2)
      .value();
}

void expect_same_program_and_values(const Function& function,
                                    const tensor_program::Program& program) {
  auto parsed = tensor_program::parse_program(program.to_string());
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << program.to_string();
  EXPECT_TRUE(equal(*parsed, program)) << program.to_string();
  // The program has fewer dimensions.
  const auto numbers = [](const Shape& shape) {
    Tensor x = Tensor::empty(DType::kFloat32, shape);
    for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i % 17) / 8 - 1;
    return std::vector<Tensor>{x};
  };
  auto got = tensor_program::evaluate(program, numbers(program.find_buffer("p0")->type.shape));
  auto want = interpret(function, numbers(function->params[0]->tensor_type().shape));
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  ASSERT_TRUE(want.ok()) << want.status().to_string();
  for (int64_t i = 0; i < (*want)[0].size(); ++i)
    ASSERT_NEAR((*got)[0].data<float>()[i], (*want)[0].data<float>()[i], 1e-5) << i;
}

TEST(Program, RowsWithTheirStatisticsInside) {
  const Expr x = var("x", {64, 96});
  const Function f = function({x}, call("nn.softmax", {call("nn.relu", {x})}));
  const tensor_program::Program program = program_of(f);
  const std::string text = program.to_string();
  EXPECT_THAT(text, HasSubstr("stage s0_part[d0:64, u:16] = max(r1:6) max(p0[d0, r1 * 16 + u]"));
  EXPECT_THAT(text, HasSubstr("stage s1[d0:64, d1:96] = exp("));
  EXPECT_THAT(text, HasSubstr("s0.compute_at(y0, inside);"));
  EXPECT_THAT(text, HasSubstr("y0.parallel(task);"));
  expect_same_program_and_values(f, program);
}

// Operators that others register say themselves what they reduce.
TEST(Program, RowsOfARegisteredReduction) {
  OpDef op;
  op.name = "test.below_largest";
  op.infer_type = [](std::span<const Type> args, const Attrs&) -> Result<Type> { return args[0]; };
  register_op(std::move(op));
  namespace tp = tensor_program;
  const auto last_axis = [](const CallNode& c) {
    return Ints{static_cast<int64_t>(c.args[0]->tensor_type().shape.size()) - 1};
  };
  tp::register_emit_rule(
      "test.below_largest",
      {.check = tp::check_float_args,
       .emit =
           [](tp::Emitter& e, const CallNode& c, size_t, const tp::Coords& at) {
             const Shape& shape = c.args[0]->tensor_type().shape;
             const Ints axes = tp::axes_reduced_by(c);
             const auto x = [&](const tp::Coords& p) { return e.value(c.args[0], p); };
             const tp::Stored& largest = e.reduce(c, 0, tp::Combine::kMax, shape, axes, x,
                                                  [](const tp::Term& v) { return v; });
             return x(at) - tp::Emitter::read_kept(largest, axes, at);
           },
       .reduces = last_axis});
  const Expr x = var("x", {64, 96});
  const Function f = function({x}, call("exp", {call("test.below_largest", {x})}));
  EXPECT_THAT(program_of(f).to_string(), HasSubstr("s0.compute_at(y0, inside);"));
}

TEST(Program, AConcatenationWritesEachPartByAnUpdate) {
  const Expr x = var("x", {4, 40, 30});
  const Expr y = call("concatenate", {make_tuple({x, call("exp", {x})})}, {{"axis", int64_t{1}}});
  const Function f = function({x}, y);
  const tensor_program::Program program = program_of(f);
  EXPECT_THAT(program.to_string(), HasSubstr("update y0[i0, along + 40, i2] = set(along:40) "
                                             "exp(p0[i0, along, i2]);"));
  expect_same_program_and_values(f, program);
}

}  // namespace
}  // namespace collage::native
