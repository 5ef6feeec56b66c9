// Programs that bring the schedules that tuning found.
#include "compiler/program_schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/given_model.h"
#include "compiler/tuning_passes.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "ops/random_inputs.h"
#include "partition/stated_kernels.h"
#include "tensor_program/call.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

// A product with weights, as a kernel of that variant of native's.
Module product(const std::string& variant) {
  const Expr p = make_var("p", TensorType{{64, 32}, DType::kFloat32});
  const Expr x = make_var("x", p->type());
  const Attrs program = {{"program", R"(program {
    param A: float32[64, 32];
    param B: float32[32, 64];
    result C[i:64, j:64] = sum(k:32) A[i, k] * B[k, j];
  })"}};
  const Expr weights = make_constant(random_tensor({{32, 64}, DType::kFloat32}, 1));
  const Attrs attrs = {{"Primitive", int64_t{1}},
                       {"Target", std::string("native")},
                       {"Variant", variant + "(float32)->(float32)"}};
  const Function kernel =
      make_function({p}, make_call(tensor_program::kCallOp, {p, weights}, program).value(), attrs);
  return Module(make_function({x}, make_function_call(kernel, {x}).value()));
}

class ProgramSchedules : public testing::GivenModel {
 protected:
  ProgramSchedules() : GivenModel(kGiven) {}
  static constexpr const char* kGiven = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(96, 64), float32], %w: Tensor[(64, 96), float32]) {
  tensor_program(%x, %w, program="program { param A: float32[96, 64]; param B: float32[64, 96]; stage S[i:96, j:96] = sum(k:64) A[i, k] * B[k, j]; stage M[i:96] = max(j:96) S[i, j]; result C[i:96, j:96] = exp(S[i, j] - M[i]); }")
}
)";
};

// What was found becomes the program's own: compiled again, nothing is searched for or measured.
TEST_F(ProgramSchedules, HistoryBecomesTheSchedule) {
  options_.targets = {"native"};
  options_.always_measure = true;
  const Result<Program> program = Program::compile(model_of(given_), options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  Module module = given_;
  const Result<bool> changed = apply_history_best(options_).run(module);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  const std::string text = to_text(module);
  EXPECT_THAT(text, HasSubstr("Variant=\"program(float32, float32)->(float32)\"")) << text;
  EXPECT_THAT(text, HasSubstr("schedule {"));
  EXPECT_THAT(text, HasSubstr("tensor_program(%p0, %p1"));
  const Result<bool> again = apply_history_best(options_).run(module);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_FALSE(*again);
  options_.always_measure = false;
  options_.frozen_costs = true;
  const Result<Program> tuned = Program::compile(model_of(*parse_module(text)), options_);
  ASSERT_TRUE(tuned.ok()) << tuned.status().to_string();
  ASSERT_EQ(tuned->impl().report.kernels.size(), 1U);
  EXPECT_EQ(tuned->impl().report.kernels[0].variant.name, "program");
}

const FunctionNode& kernel_of(const Module& module) {
  return *as<FunctionNode>(as<CallNode>(module.main()->body)->callee);
}

// Panels that a schedule copies of weights are the weights, once the program brings it.
TEST_F(ProgramSchedules, CopiesOfWeightsAreFolded) {
  const Module given = product("stages packed tile 4x1");
  const Result<Module> made = with_program_schedules(given, 1);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const FunctionNode& kernel = kernel_of(*made);
  EXPECT_EQ(text_attr(kernel.attrs, "Variant"), "program(float32)->(float32)");
  const CallNode* call = as_op(kernel.body, tensor_program::kCallOp);
  ASSERT_NE(call, nullptr) << to_text(*made);
  const auto* weights = as<ConstantNode>(call->args[1]);
  ASSERT_NE(weights, nullptr) << to_text(*made);
  EXPECT_EQ(weights->value.shape().size(), 3U) << to_text(*made);
  EXPECT_EQ(weights->value.size(), 32 * 64);
  const std::vector<Tensor> inputs = {random_tensor({{64, 32}, DType::kFloat32}, 2)};
  const Tensor wanted = interpret(inline_calls(given.main()).value(), inputs).value()[0];
  const Tensor got = interpret(inline_calls(made->main()).value(), inputs).value()[0];
  for (int64_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4) << i;
}

// Variants without words in programs, and other functions, stay as they are.
TEST_F(ProgramSchedules, OthersStay) {
  for (const char* variant : {"program", "stages ahead", "none such"}) {
    const Module given = product(variant);
    const Result<Module> made = with_program_schedules(given, 1);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    EXPECT_TRUE(structural_equal(*made, given)) << variant;
  }
}

// Programs of that name get the schedule; the graph around them stays.
TEST_F(ProgramSchedules, TunedByName) {
  options_.targets = {"native"};
  const std::string program =
      "program { param A: float32[64, 96]; stage M[i:64] = max(j:96) A[i, j]; result C[i:64, j:96] "
      "= A[i, j] - M[i]; }";
  const Module given = parse_module(fmt::format(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(64, 96), float32]) {{
  %0 = tensor_program(exp(%x), program="{0}", name="first");
  tensor_program(tanh(%0), program="{0}", name="second")
}}
)",
                                                program))
                           .value();
  Module module = given;
  const auto schedules = [&](const std::string& filter) {
    module = given;
    EXPECT_EQ(tune(filter, options_).run(module).value(), filter != "third");
    size_t found = 0;
    const std::string text = to_text(module);
    EXPECT_THAT(text, ::testing::AllOf(HasSubstr("exp(%x)"), HasSubstr("tanh(%")));
    for (size_t at = 0; (at = text.find("schedule {", at)) != text.npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(schedules("second"), 1U);
  EXPECT_THAT(to_text(module), HasSubstr("name=\"second\""));
  EXPECT_EQ(schedules("third"), 0U);
  EXPECT_EQ(schedules(""), 2U);
  EXPECT_FALSE(tune("", options_).run(module).value()) << "they are kernels";
  EXPECT_EQ(tune("(", options_).run(module).status().code(), ErrorCode::kUsage);
  const Tensor x = random_tensor({{64, 96}, DType::kFloat32}, 3);
  const auto result = [&](const Module& of) {
    return interpret(inline_calls(of.main()).value(), std::vector{x}).value()[0];
  };
  const Tensor wanted = result(given), got = result(module);
  for (int64_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4) << i;
}

}  // namespace
}  // namespace collage
