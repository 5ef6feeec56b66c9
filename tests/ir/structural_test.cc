// Structural equality and hashing: what counts (operators, attributes, values, order of parameters)
// and what does not (names, origins, sharing).
#include "ir/structural.h"

#include <gtest/gtest.h>

#include "ir/text_parser.h"
#include "test_ops.h"

namespace collage {
namespace {

Function parse(const std::string& text) {
  register_test_ops();
  Result<Function> function = parse_function(text);
  if (!function) ADD_FAILURE() << function.status().to_string();
  return *function;
}

constexpr const char* kBase =
    "fn (%a: float32, %b: float32) { %0 = test.unary(%a); test.add(%0, %b) }";

TEST(Structural, NamesAndSharingDoNotCount) {
  Function base = parse(kBase);
  Function renamed =
      parse("fn (%y: float32, %x: float32) { %7 = test.unary(%y); test.add(%7, %x) }");
  EXPECT_TRUE(structural_equal(base, renamed));
  EXPECT_TRUE(
      structural_equal(parse("fn (%a: float32) { %0 = test.unary(%a); test.add(%0, %0) }"),
                       parse("fn (%a: float32) { test.add(test.unary(%a), test.unary(%a)) }")));
}

TEST(Structural, EverythingElseCounts) {
  for (const char* other :
       {"fn (%a: float32, %b: float32) { %0 = test.unary(%b); test.add(%0, %a) }",
        "fn (%a: float32, %b: float32) { %0 = test.unary(%a, alpha=2f); test.add(%0, %b) }",
        "fn (%a: float32, %b: float32) { %0 = test.unary(%a); test.add(%b, %0) }",
        "fn (%a: float64, %b: float64) { %0 = test.unary(%a); test.add(%0, %b) }",
        "fn (%a: float32, %b: float32, Primitive=1) { %0 = test.unary(%a); test.add(%0, %b) }",
        "fn (%a: float32, %b: float32, %c: float32) { %0 = test.unary(%a); test.add(%0, %b) }",
        "fn (%a: float32, %b: float32) { %0 = test.unary(%a); test.add(%0, 1f) }"}) {
    EXPECT_FALSE(structural_equal(parse(kBase), parse(other))) << other;
  }
}

TEST(Structural, ConstantsCompareByValue) {
  auto with = [](std::vector<float> values, Shape shape) {
    return make_function({}, make_constant(Tensor::from<float>(std::move(shape), values)));
  };
  EXPECT_TRUE(structural_equal(with({1, 2}, {2}), with({1, 2}, {2})));
  EXPECT_FALSE(structural_equal(with({1, 2}, {2}), with({1, 3}, {2})));
  EXPECT_FALSE(structural_equal(with({1, 2}, {2}), with({1, 2}, {1, 2})));
}

// One function literal at two depths equals two copies of it.
TEST(Structural, NestedFunctionsCompareWhereverTheyStand) {
  auto leaf = [](Expr& x) {
    x = make_var("x", TensorType{{}, DType::kFloat32});
    return make_function({x}, *make_call("test.unary", {x}));
  };
  auto build = [&](bool shared) {
    register_test_ops();
    Expr x, y = make_var("y", TensorType{{}, DType::kFloat32}),
            z = make_var("z", TensorType{{}, DType::kFloat32});
    Function f = leaf(x), g = shared ? f : leaf(x);
    Function outer = make_function({y}, *make_function_call(g, {y}));
    return make_function({z}, *make_function_call(outer, {*make_function_call(f, {z})}));
  };
  EXPECT_TRUE(structural_equal(build(true), build(false)));
}

// A chain in which each node uses the previous one twice has 2^60 paths.
TEST(Structural, SharedGraphsTakeLinearTime) {
  register_test_ops();
  auto chain = [] {
    Expr x = make_var("x", TensorType{{}, DType::kFloat32}), y = x;
    for (int i = 0; i < 60; ++i) y = *make_call("test.add", {y, y});
    return make_function({x}, y);
  };
  EXPECT_TRUE(structural_equal(chain(), chain()));
}

// Who numbers a graph from below asks for each node: what has a number is not walked again.
TEST(Structural, NodesAreNumberedOneByOneInLinearTime) {
  register_test_ops();
  ValueNumbering numbers;
  const auto last_of_chain = [&] {
    Expr x = make_constant(Tensor::scalar(1.0f));
    for (int i = 0; i < 20000; ++i) {
      x = *make_call("test.add", {x, x});
      numbers.number(x);
    }
    return x;
  };
  const Expr a = last_of_chain(), b = last_of_chain();
  EXPECT_NE(a, b);
  EXPECT_EQ(numbers.number(a), numbers.number(b));
}

TEST(Structural, RandomGraphsDiffer) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_TRUE(structural_equal(random_function(seed, 30), random_function(seed, 30)));
    EXPECT_FALSE(structural_equal(random_function(seed, 30), random_function(seed + 1, 30)));
  }
}

}  // namespace
}  // namespace collage
