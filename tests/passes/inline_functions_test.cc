// Calls of a module's functions by name, text in and text out.
#include "passes/inline_functions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/script/script.h"
#include "ir/op.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "passes/devices/operators.h"
#include "passes/passes.h"
#include "passes/verify.h"
#include "tensor_program/call.h"
#include "tensor_program/module_programs.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

/// The module that results, or what is wrong.
std::string inlined(const std::string& text) {
  register_operators();
  Result<Module> module = parse_module(text);
  if (!module) return module.status().to_string();
  const Result<bool> changed = inline_functions(*module);
  if (!changed) return changed.status().to_string();
  if (!*changed) return "unchanged";
  EXPECT_TRUE(verify(*module).ok()) << verify(*module).to_string();
  const std::string printed = to_text(*module);
  return printed.substr(printed.find('\n') + 1);
}

TEST(InlineFunctions, BodiesTakeThePlaceOfCalls) {
  EXPECT_EQ(inlined(R"(
def @both(%x: float32, %y: float32) -> (float32, float32) { (@one(%x), @one(%y)) }
def @one(%x: float32) -> float32 { nn.relu(exp(%x)) }
def @main(%a: float32, %b: float32) {
  %0 = @both(%a, @one(%b));
  add(%0.0, %0.1)
}
)"),
            R"(def @main(%a: float32, %b: float32) -> float32 {
  %0 = exp(%a);
  %1 = nn.relu(%0);
  %2 = exp(%b);
  %3 = nn.relu(%2);
  %4 = exp(%3);
  %5 = nn.relu(%4);
  %6 = (%1, %5);
  add(%6.0, %6.1)
}
)");
}

TEST(InlineFunctions, DevicesThatAttributesStateArePlacements) {
  EXPECT_EQ(inlined(R"(
def @f(%x: (float32, float32), param_devices="gpu:1, ?", result_devices="gpu:0") -> float32 {
  add(%x.0, %x.1)
}
def @main(%a: float32, param_devices="cpu:0") { @f((%a, exp(%a))) }
)"),
            R"(def @main(%a: float32) -> float32 {
  %0 = on_device(%a, device="cpu:0", constrain_result=True);
  %1 = exp(%0);
  %2 = (%0, %1);
  %3 = on_device(%2.0, device="gpu:1", constrain_body=False, constrain_result=True);
  %4 = (%3, %2.1);
  %5 = add(%4.0, %4.1);
  on_device(%5, device="gpu:0")
}
)");
  EXPECT_THAT(inlined(R"(
def @main(%a: float32, param_devices="cpu:0, gpu:0") { exp(%a) }
)"),
              HasSubstr("param_devices names 2 devices, there are 1 tensors"));
}

TEST(InlineFunctions, PrimitiveOnesAreCalledAsLiterals) {
  EXPECT_EQ(inlined(R"(
def @kernel(%x: float32, Primitive=1, Compiler="onednn") -> float32 { nn.relu(@inner(%x)) }
def @inner(%x: float32) -> float32 { exp(%x) }
def @main(%a: float32) { @kernel(@kernel(%a)) }
)"),
            R"(def @main(%a: float32) -> float32 {
  %0 = fn (%x: float32, Compiler="onednn", Primitive=1, global_symbol="kernel") -> float32 {
    %1 = exp(%x);
    nn.relu(%1)
  };
  %2 = %0(%a);
  %0(%2)
}
)");
}

TEST(InlineFunctions, CallsInsideLiteralsToo) {
  EXPECT_EQ(inlined(R"(
def @inner(%x: float32) -> float32 { exp(%x) }
def @main(%a: float32) {
  %0 = fn (%x: float32, Primitive=1) { nn.relu(@inner(%x)) };
  %0(%a)
}
)"),
            R"(def @main(%a: float32) -> float32 {
  %0 = fn (%x: float32, Primitive=1) -> float32 {
    %1 = exp(%x);
    nn.relu(%1)
  };
  %0(%a)
}
)");
}

// Passes rewrite literals one by one, so each place has its own. Kernels, which no pass enters,
// stay one function, and programs are linked in them once.
TEST(InlineFunctions, LiteralsOfFunctionsThatAreCalledTwiceAreEachTheirOwn) {
  register_operators();
  if (find_op(tensor_program::kCallOp) == nullptr) tensor_program::register_call_ops();
  Result<Module> module = tensor_program::parse_module_text(R"(
program @half { param a: float32[4]; result b[i:4] = a[i] * 0.5f; }
def @kernel(%x: Tensor[(4), float32], Primitive=1) -> Tensor[(4), float32] { exp(@half(%x)) }
def @chosen(%x: Tensor[(4), float32], %go: bool) -> Tensor[(4), float32] {
  %0 = fn (%y: Tensor[(4), float32]) { @half(@kernel(multiply(%y, 1f))) };
  %1 = fn (%y: Tensor[(4), float32]) { %y };
  control.if(%go, %0, %1, %x)
}
def @main(%x: Tensor[(4), float32], %go: bool) {
  %0 = fn (%i: int64, %s: Tensor[(4), float32], %on: bool) { (True, @chosen(@kernel(%s), %on)) };
  %1 = control.loop(2i64, True, %0, %x, %go, states=1);
  @chosen(@chosen(%1.0, %go), %go)
}
)");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  ASSERT_TRUE(inline_functions(*module).value());
  EXPECT_TRUE(verify(*module).ok()) << verify(*module).to_string();
  ASSERT_TRUE(tensor_program::link_programs(*module).value());
  EXPECT_TRUE(verify(*module).ok()) << verify(*module).to_string();
  const auto simplified = simplification_pipeline().run(*module);  // verifies after each pass
  EXPECT_TRUE(simplified.ok()) << simplified.status().to_string();
}

TEST(InlineFunctions, NothingToDo) {
  EXPECT_EQ(inlined("def @main(%a: float32) { exp(%a) }"), "unchanged");
  EXPECT_EQ(inlined("def @other(%a: float32) -> float32 { @other(%a) }\n"
                    "def @main(%a: float32) { exp(%a) }"),
            "unchanged");
}

TEST(InlineFunctions, FunctionsThatCallThemselvesAreRefused) {
  EXPECT_EQ(inlined("def @main(%a: float32) -> float32 { @main(%a) }"), "@main calls itself");
  EXPECT_EQ(inlined("def @f(%a: float32) -> float32 { @g(%a) }\n"
                    "def @g(%a: float32) -> float32 { exp(@f(%a)) }\n"
                    "def @main(%a: float32) { @f(%a) }"),
            "@f calls itself");
}

TEST(InlineFunctions, WhatBecomesTooLargeIsRefused) {
  std::string text = "def @f0(%a: float32) -> float32 { exp(%a) }\n";
  for (int i = 1; i < 40; ++i)
    text += fmt::format("def @f{0}(%a: float32) -> float32 {{ @f{1}(@f{1}(%a)) }}\n", i, i - 1);
  EXPECT_THAT(inlined(text + "def @main(%a: float32) { @f39(%a) }"),
              HasSubstr("calls of functions come to more than 1048576 operators"));
  text = "def @f0(%a: float32) -> float32 { exp(%a) }\n";
  for (int i = 1; i < 400; ++i)
    text += fmt::format("def @f{}(%a: float32) -> float32 {{ @f{}(%a) }}\n", i, i - 1);
  EXPECT_THAT(inlined(text + "def @main(%a: float32) { @f399(%a) }"),
              HasSubstr("functions call one another more than 256 levels deep"));
}

}  // namespace
}  // namespace collage
