// widen_halves beyond single functions of operators: tensor programs, modules, the whole pipeline.
#include "passes/widen_halves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/half.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "random_tensors.h"
#include "tensor_program/call.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

Module parse(const std::string& text) {
  register_all_ops();
  if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
  ParseOptions options;
  options.constant = [](const TensorType& type, size_t index) -> Result<Tensor> {
    return random_tensor(type, index, -0.5, 0.5);
  };
  Result<Module> module = parse_module(text, options);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module ? *module : Module();
}

// Half-width tensors, but for parameters and results.
size_t inner_halves(const Function& function) {
  size_t count = 0;
  for (const Expr& node : post_order(function->body)) {
    if (node->kind() == ExprKind::kVar || node == function->body) continue;
    for (const TensorType& leaf : node->type().leaves()) count += is_half(leaf.dtype);
  }
  return count;
}

TEST(WidenHalves, GivesATensorProgramTheTypesThatItTakes) {
  const Module module = parse(
      "fn (%x: Tensor[(4), float16]) {\n"
      "  %0 = tensor_program(add(%x, %x), program=\"program { param A: float16[4]; "
      "result C[i:4] = float16(float32(A[i]) * 3.0f); }\");\n"
      "  tanh(%0)\n}");
  const Result<Function> wide = widen_halves(module.main());
  ASSERT_TRUE(wide.ok()) << wide.status().to_string();
  const std::string text = to_text(*wide);
  EXPECT_THAT(text, HasSubstr("%1 = add(%0, %0);\n  %2 = cast(%1, dtype=\"float16\");"));
  EXPECT_THAT(text, HasSubstr("%4 = cast(%3, dtype=\"float32\");\n  %5 = tanh(%4);"));
  expect_same_values(module.main(), *wide);
}

TEST(WidenHalves, IsDoneOnce) {
  const Module module =
      parse("fn (%x: Tensor[(4), bfloat16]) { (exp(%x), cast(%x, dtype=\"float32\"), %x) }");
  const Function wide = widen_halves(module.main()).value();
  EXPECT_NE(wide, module.main());
  EXPECT_EQ(widen_halves(wide).value(), wide);
}

TEST(WidenHalves, FunctionsThatCallEachOtherKeepTheirTypes) {
  Module module = parse(
      "def @main(%x: Tensor[(4), float16]) -> Tensor[(4), float16] { @f(abs(%x)) }\n"
      "def @f(%x: Tensor[(4), float16]) -> Tensor[(4), float16] { nn.relu(tanh(%x)) }\n");
  const Type before = module.functions.at("f")->result_type();
  PipelineOptions options;
  options.disabled = {"inline_functions"};
  ASSERT_TRUE(simplification_pipeline().run(module, options).ok());
  EXPECT_EQ(module.functions.at("f")->result_type(), before);
  EXPECT_THAT(to_text(module), HasSubstr("nn.relu(%1)"));
  EXPECT_EQ(inner_halves(module.functions.at("f")), 0U);
}

// What passes fold and recognise in float32 they do in models of half precision too.
TEST(WidenHalves, ComesBeforeWhatFoldsAndMatches) {
  for (const char* type : {"float16", "bfloat16"}) {
    std::string text = R"(
fn (%x: Tensor[(1, 3, 8, 8), HALF]) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(6, 3, 3, 3), HALF]*/);
  %1 = multiply(%0, meta[relay.Constant][1] /*Tensor[(6, 1, 1), HALF]*/);
  %2 = add(%1, meta[relay.Constant][2] /*Tensor[(6, 1, 1), HALF]*/);
  %3 = multiply(%2, sigmoid(%2));
  nn.softmax(nn.batch_flatten(%3))
})";
    for (size_t at = 0; (at = text.find("HALF", at)) != std::string::npos;)
      text.replace(at, 4, type);
    Module module = parse(text);
    const Function before = module.main();
    ASSERT_TRUE(simplification_pipeline().run(module).ok());
    EXPECT_EQ(inner_halves(module.main()), 0U) << to_text(module.main());
    const std::string after = to_text(module.main());
    EXPECT_THAT(after, HasSubstr("nn.bias_add("));
    EXPECT_THAT(after, HasSubstr("nn.silu("));
    expect_same_values(before, module.main());
    EXPECT_EQ(coarsest_half(Module(before)), *parse_dtype(type));
  }
}

TEST(WidenHalves, TheCoarsestTypeIsThatOfAnyFunction) {
  EXPECT_EQ(coarsest_half(parse("fn (%x: Tensor[(4), float32]) { tanh(%x) }")), std::nullopt);
  EXPECT_EQ(coarsest_half(parse("fn (%x: Tensor[(4), float16], %y: Tensor[(4), bfloat16]) "
                                "{ (tanh(%y), tanh(%x)) }")),
            DType::kBFloat16);
  EXPECT_EQ(coarsest_half(parse("def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] "
                                "{ @f(%x) }\n"
                                "def @f(%x: Tensor[(4), float32]) -> Tensor[(4), float32] "
                                "{ cast(cast(%x, dtype=\"float16\"), dtype=\"float32\") }\n")),
            DType::kFloat16);
}

}  // namespace
}  // namespace collage
