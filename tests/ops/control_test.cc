// Control flow as operators of functions: text and types, and what the interpreter computes.
#include "ops/control.h"

#include <cmath>
#include <limits>
#include <set>

#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/work.h"
#include "op_test.h"
#include "runtime/run_number.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Module> parsed(const std::string& text) {
  register_all_ops();
  return parse_module(text);
}

std::vector<Tensor> run_text(const std::string& text, const std::vector<Tensor>& inputs) {
  Result<Module> module = parsed(text);
  if (!module) {
    ADD_FAILURE() << module.status().to_string();
    return {};
  }
  Result<std::vector<Tensor>> results = interpret(module->main(), inputs);
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  return results ? *results : std::vector<Tensor>();
}

std::string why_not(const std::string& call) {
  const Result<Module> module = parsed(
      "def @main(%n: int64, %c: bool, %x: Tensor[(3), float32], %f: float32) {\n  " + call + "\n}");
  return module ? "" : module.status().to_string();
}

constexpr const char* kSums = R"(
def @main(%n: int64, %c: bool, %x: Tensor[(3), float32], %by: float32) {
  %0 = fn (%i: int64, %sum: float32, %row: float32, %factor: float32) -> (bool, float32, float32) {
    %1 = add(%sum, multiply(%row, %factor));
    (less(%1, 100f), %1, %1)
  };
  control.loop(%n, %c, %0, 0f, %x, %by, states=1, scanned=1, rows=3)
}
)";

TEST(Control, LoopsScanStackAndEnd) {
  const auto sums = [](int64_t trips, bool condition, float by) {
    return run_text(kSums, {Tensor::scalar<int64_t>(trips), Tensor::scalar<bool>(condition),
                            floats({3}, {1, 2, 3}), Tensor::scalar<float>(by)});
  };
  std::vector<Tensor> results = sums(3, true, 2);
  EXPECT_THAT(floats_of(results[0]), ElementsAre(12));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(2, 6, 12));
  results = sums(2, true, 2);  // before its rows end
  EXPECT_THAT(floats_of(results[1]), ElementsAre(2, 6, 0));
  results = sums(1000, true, 2);  // after
  EXPECT_THAT(floats_of(results[0]), ElementsAre(12));
  results = sums(3, true, 40);  // its condition fails
  EXPECT_THAT(floats_of(results[0]), ElementsAre(120));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(40, 120, 0));
  for (const auto& [trips, condition] : {std::pair{0, true}, {-1, true}, {3, false}}) {
    results = sums(trips, condition, 2);
    EXPECT_THAT(floats_of(results[0]), ElementsAre(0));
    EXPECT_THAT(floats_of(results[1]), ElementsAre(0, 0, 0));
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  results = sums(3, true, nan);  // NaN is less than nothing
  EXPECT_TRUE(std::isnan(floats_of(results[0])[0]));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(::testing::IsNan(), 0, 0));
}

TEST(Control, ConditionsTakeABranch) {
  const std::string text = R"(
def @main(%c: bool, %x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
  %0 = fn (%a: Tensor[(2), float32], %b: Tensor[(2), float32]) { (add(%a, %b), %a) };
  %1 = fn (%a: Tensor[(2), float32], %b: Tensor[(2), float32]) { (multiply(%a, %b), %b) };
  control.if(%c, %0, %1, %x, %y)
}
)";
  const Tensor x = floats({2}, {3, 4}), y = floats({2}, {5, 6});
  std::vector<Tensor> results = run_text(text, {Tensor::scalar<bool>(true), x, y});
  EXPECT_THAT(floats_of(results[0]), ElementsAre(8, 10));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(3, 4));
  results = run_text(text, {Tensor::scalar<bool>(false), x, y});
  EXPECT_THAT(floats_of(results[0]), ElementsAre(15, 24));
  EXPECT_THAT(floats_of(results[1]), ElementsAre(5, 6));
}

// A state that is a row of what is scanned stays what it was when that has gone.
TEST(Control, StatesMayBeRows) {
  const std::string text = R"(
def @main(%x: Tensor[(3), float32]) {
  %0 = fn (%i: int64, %last: float32, %row: float32) { (True, %row) };
  %1 = control.loop(3i64, True, %0, 0f, exp(%x), states=1, scanned=1, rows=3);
  negative(%1.0)
}
)";
  EXPECT_THAT(floats_of(run_text(text, {floats({3}, {1, 2, 0})})[0]), ElementsAre(-1));
}

TEST(Control, TextIsReadBack) {
  for (const bool types : {false, true}) {
    const Result<Module> module = parsed(kSums);
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    PrintOptions options;
    options.show_types = types;
    const std::string text = to_text(*module, options);
    const Result<Module> again = parsed(text);
    ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << text;
    EXPECT_TRUE(structural_equal(*module, *again)) << text;
    EXPECT_EQ(to_text(*again, options), text);
  }
}

TEST(Control, FunctionsThatDifferMakeCallsDiffer) {
  std::string other = kSums;
  other.replace(other.find("100f"), 4, "200f");
  EXPECT_FALSE(structural_equal(*parsed(kSums), *parsed(other)));
}

TEST(Control, TypesAreChecked) {
  const std::string same = "fn (%a: float32) { %a }";
  EXPECT_THAT(why_not("control.if(%n, " + same + ", " + same + ", %f)"),
              HasSubstr("the condition is a int64, not a scalar of bool"));
  EXPECT_THAT(why_not("control.if(%c, %f, " + same + ", %f)"), HasSubstr("not a function"));
  EXPECT_THAT(why_not("control.if(%c, " + same + ", " + same + ")"),
              HasSubstr("a branch of 1 parameters for 0 arguments"));
  EXPECT_THAT(why_not("control.if(%c, " + same + ", " + same + ", %x)"),
              HasSubstr("argument 0 is a Tensor[(3), float32], not a float32"));
  EXPECT_THAT(why_not("control.if(%c, " + same + ", fn (%a: float32) { (%a, %a) }, %f)"),
              HasSubstr("its branches give float32 and (float32, float32)"));
  const auto loop = [](const std::string& body, const std::string& rest) {
    return why_not("control.loop(%n, %c, fn " + body + ", " + rest + ")");
  };
  EXPECT_EQ(loop("(%i: int64, %s: float32) { (True, %s) }", "%f, states=1"), "");
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (True, %s) }", "%f, states=2"),
              HasSubstr("2 states and 0 scanned tensors of 1 operands"));
  EXPECT_THAT(loop("(%s: float32) { (True, %s) }", "%f, states=1"),
              HasSubstr("a body of 1 parameters for 1 operands"));
  EXPECT_THAT(loop("(%i: int64, %s: float32) { %s }", "%f, states=1"),
              HasSubstr("its body gives a float32"));
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (%s, %s) }", "%f, states=1"),
              HasSubstr("result 0 is a float32, not a bool"));
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (True, %i) }", "%f, states=1"),
              HasSubstr("state 0 is a int64, not a float32"));
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (True, %s, %s) }", "%f, states=1"),
              HasSubstr("-1 rows for 0 scanned and 1 stacked tensors"));
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (True, %s) }", "%f, states=1, rows=3"),
              HasSubstr("3 rows for 0 scanned and 0 stacked tensors"));
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (True, %s) }", "%x, scanned=1, rows=4"),
              HasSubstr("scanned operand 0 is a Tensor[(3), float32], not of 4 rows"));
  EXPECT_THAT(loop("(%i: int64) { (True,) }", "states=0"), HasSubstr("its body gives a (bool,)"));
  // What a function reads of the one around it is no operand.
  EXPECT_THAT(loop("(%i: int64, %s: float32) { (True, %f) }", "%f, states=1"),
              HasSubstr("%f is not defined here"));
}

TEST(Control, WorkIsThatOfAllIterations) {
  const std::string text = R"(
def @main(%n: int64, %x: Tensor[(10), float32]) {
  %0 = fn (%i: int64, %s: Tensor[(10), float32]) { (True, exp(exp(%s))) };
  control.loop(TRIPS, True, %0, %x, states=1)
}
)";
  const auto work = [&](const std::string& trips) {
    std::string whole = text;
    whole.replace(whole.find("TRIPS"), 5, trips);
    return function_flops(parsed(whole)->main());
  };
  EXPECT_DOUBLE_EQ(work("50i64"), 5 * work("10i64"));
  EXPECT_GT(work("%n"), work("1i64"));
}

// Each iteration draws its own numbers, the same in a run of the same number.
TEST(Control, IterationsDrawTheirOwn) {
  const std::string text = R"(
def @main(%x: float32) {
  %0 = fn (%i: int64, %s: float32) {
    %1 = random.uniform(7i64, random.run(), shape=[]);
    (True, %s, %1)
  };
  %2 = control.loop(8i64, True, %0, %x, states=1, rows=8);
  %2.1
}
)";
  std::vector<std::vector<float>> draws;
  for (const uint64_t number : {0, 1, 0}) {
    const RunNumber run(number);
    draws.push_back(floats_of(run_text(text, {Tensor::scalar<float>(0)})[0]));
  }
  EXPECT_EQ(std::set<float>(draws[0].begin(), draws[0].end()).size(), 8u);
  EXPECT_NE(draws[0], draws[1]);
  EXPECT_EQ(draws[0], draws[2]);
}

// A loop whose end depends on values ends where no user runs it.
TEST(Control, ChecksOfEndlessLoopsEnd) {
  const std::string text = R"(
def @main(%n: int64, %x: float32) {
  %0 = fn (%i: int64, %s: float32) { (True, add(%s, 1f)) };
  control.loop(%n, True, %0, %x, states=1)
}
)";
  const std::vector<Tensor> inputs = {Tensor::scalar<int64_t>(5000), Tensor::scalar<float>(0)};
  EXPECT_THAT(floats_of(run_text(text, inputs)[0]), ElementsAre(kMostCheckedIterations));
  const RunNumber user(0);
  EXPECT_THAT(floats_of(run_text(text, inputs)[0]), ElementsAre(5000));
}

// Integers that a body uses as indices are drawn within what it selects from.
TEST(Control, InputsAreDrawnForWhatFunctionsDemand) {
  const Result<Module> module = parsed(R"(
def @main(%k: int64, %x: Tensor[(2), float32]) {
  %0 = fn (%i: int64, %s: float32, %at: int64, %from: Tensor[(2), float32]) {
    (True, add(%s, take(%from, %at, axis=0)))
  };
  control.loop(3i64, True, %0, 0f, %k, %x, states=1)
}
)");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EXPECT_EQ(input_ranges(module->main())[0].high, 1);
}

}  // namespace
}  // namespace collage
