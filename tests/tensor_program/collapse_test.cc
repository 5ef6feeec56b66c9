// collapse_dims: functions as text, and their values against the function's own over every
// operator's cases.
#include "tensor_program/emit/collapse.h"

#include <gtest/gtest.h>

#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ops/cases.h"
#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage::tensor_program {
namespace {

/// The body of `call` over x, of that shape, after collapsing dimensions from `first` on.
std::string collapsed(const std::string& shape, const std::string& call, int64_t first = 0) {
  register_all_ops();
  const std::string text = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[" + shape +
                           ", float32]) {\n  " + call + "\n}\n";
  const Result<Module> module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return to_text(collapse_dims(module->main(), first));
}

std::string function(const std::string& shape, const std::string& result, const std::string& call) {
  return "#[version = \"0.0.5\"]\nfn (%x: Tensor[" + shape + ", float32]) -> Tensor[" + result +
         ", float32] {\n  " + call + "\n}\n";
}

TEST(Collapse, MergesWhatReductionsTreatAlike) {
  EXPECT_EQ(collapsed("(10, 5, 4, 3)", "sum(%x, axis=[0])"),
            function("(10, 60)", "(60)", "sum(%x, axis=[0])"));
  EXPECT_EQ(collapsed("(2, 5, 4, 3)", "max(%x, axis=[2, 3], keepdims=True)"),
            function("(10, 12)", "(10, 1)", "max(%x, axis=[1], keepdims=True)"));
  EXPECT_EQ(collapsed("(2, 5, 4, 3)", "mean(%x, axis=[1], exclude=True)"),
            function("(2, 5, 12)", "(5)", "mean(%x, axis=[0, 2])"));
  EXPECT_EQ(collapsed("(2, 5, 4, 3)", "nn.softmax(%x, axis=1)"),
            function("(2, 5, 12)", "(2, 5, 12)", "nn.softmax(%x, axis=1)"));
  EXPECT_EQ(collapsed("(6, 4)", "sum(%x, keepdims=True)"),
            function("(24)", "(1)", "sum(%x, axis=[0], keepdims=True)"));
}

TEST(Collapse, MergesElementWiseCallsAroundReductions) {
  EXPECT_EQ(
      collapsed("(2, 3, 4, 5)", "subtract(%x, max(exp(%x), axis=[3, 2], keepdims=True))"),
      "#[version = \"0.0.5\"]\nfn (%x: Tensor[(6, 20), float32]) -> Tensor[(6, 20), float32] {\n"
      "  %0 = exp(%x);\n"
      "  %1 = max(%0, axis=[1], keepdims=True);\n"
      "  subtract(%x, %1)\n}\n");
  // What lacks dimensions is not lined up with what has them.
  const std::string lacking = "nn.relu(sum(%x, axis=[1]))";
  EXPECT_NE(collapsed("(2, 3, 4, 5)", lacking).find("(2, 3, 4, 5)"), std::string::npos);
  EXPECT_EQ(collapsed("(2, 8, 4, 5)", "sum(%x, axis=[1])", 2),
            function("(2, 8, 20)", "(2, 20)", "sum(%x, axis=[1])"));
}

std::vector<Tensor> reshaped(const std::vector<Tensor>& inputs, const Function& function) {
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back(inputs[i].reshaped(function->params[i]->tensor_type().shape));
  return result;
}

TEST(Collapse, ComputesTheSameOfEveryOperator) {
  register_all_ops();
  size_t changed = 0;
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.to_string());
    const auto built = build_case(c, 7);
    ASSERT_TRUE(built.ok()) << built.status().message();
    const Function collapsed = collapse_dims(built->function, 0);
    if (collapsed == built->function) continue;
    ++changed;
    const auto want = interpret(built->function, built->inputs);
    const auto got = interpret(collapsed, reshaped(built->inputs, collapsed));
    ASSERT_TRUE(want.ok() && got.ok()) << want.status().to_string() << got.status().to_string();
    const Tensor &a = (*got)[0], &b = (*want)[0];
    ASSERT_EQ(a.dtype(), b.dtype());
    ASSERT_EQ(a.size(), b.size());
    for (int64_t i = 0; i < b.size(); ++i) {
      const double x = a.element_as_double(i), y = b.element_as_double(i);
      ASSERT_TRUE(x == y || (x != x && y != y) || std::abs(x - y) <= 1e-6 * std::abs(y))
          << x << " for " << y << " in " << to_text(collapsed);
    }
  }
  EXPECT_GT(changed, 100u);
}

}  // namespace
}  // namespace collage::tensor_program
