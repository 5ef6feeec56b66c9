#include "ir/matcher.h"

#include <gmock/gmock.h>

#include "ir/tiny_function.h"

namespace collage {
namespace {

std::string inside(const TinyFunction& g, const std::optional<Match>& found) {
  if (!found) return "no match";
  std::string text;
  for (const Expr& part : found->inside) text += (text.empty() ? "" : " ") + g.name_of(part);
  return text;
}

TEST(Match, TakesWhatThePatternSpellsOut) {
  TinyFunction g("x; a = conv(x, c1); b = relu(a); d = exp(b); return d");
  EXPECT_EQ(inside(g, match(is_op("relu")(is_op("conv")(wildcard(), is_constant())), g["b"])),
            "a b");
  EXPECT_EQ(inside(g, match(is_op("relu")(wildcard()), g["b"])), "b");
  EXPECT_EQ(inside(g, match(is_op("relu")(is_op("conv")(is_constant(), wildcard())), g["b"])),
            "no match");
  EXPECT_EQ(inside(g, match(is_op("relu")(is_op("conv")(wildcard())), g["b"])), "no match");
  EXPECT_EQ(inside(g, match(is_op("relu")(wildcard()), g["d"])), "no match");
}

TEST(Match, BindsPatternNodesToExpressions) {
  TinyFunction g("x; a = conv(x, c1); return relu(a)");
  DFPattern data = wildcard(), weight = is_constant();
  DFPattern conv = is_op("conv")(data, weight);
  std::optional<Match> found = match(is_op("relu")(conv), g["result"]);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[data], g["x"]);
  EXPECT_EQ((*found)[weight], g["c1"]);
  EXPECT_EQ((*found)[conv], g["a"]);
  EXPECT_EQ(found->call("conv"), g["a"].get());
  EXPECT_EQ(found->call("dense"), nullptr);
}

TEST(Match, CommutativeOperatorsMatchInEitherOrder) {
  TinyFunction g("x; y; a = relu(x); b = add(y, a); d = subtract(y, a); return tuple(b, d)");
  EXPECT_EQ(inside(g, match(is_op("add")(is_op("relu"), wildcard()), g["b"])), "a b");
  EXPECT_EQ(inside(g, match(is_op("subtract")(is_op("relu"), wildcard()), g["d"])), "no match");
}

TEST(Match, OneNodeMatchesOneExpression) {
  TinyFunction g(
      "x; y; a = sigmoid(x); b = multiply(x, a); d = multiply(y, a); return tuple(b, d)");
  DFPattern x = wildcard();
  DFPattern swish = is_op("multiply")(is_op("sigmoid")(x), x);
  EXPECT_EQ(inside(g, match(swish, g["b"])), "a b");
  EXPECT_EQ(inside(g, match(swish, g["d"])), "no match");
}

TEST(Match, BacktracksOverOrdersAndAlternatives) {
  // The first order binds x to the wrong factor; only the second makes the whole pattern fit.
  TinyFunction g("x; y; p = relu(x); q = relu(y); m = multiply(p, q); e = add(m, y); return e");
  DFPattern x = wildcard();
  DFPattern pattern = is_op("add")(is_op("multiply")(is_op("relu")(x), is_op("relu")), x);
  std::optional<Match> found = match(pattern, g["e"]);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[x], g["y"]);
  DFPattern z = wildcard();
  DFPattern either = (is_op("relu")(z) | z);
  EXPECT_EQ(inside(g, match(is_op("multiply")(either, is_op("exp")), g["m"])), "no match");
}

TEST(Match, OptionalPrefersTheLongerForm) {
  TinyFunction g("x; a = conv(x, c1); b = relu(a); return b");
  DFPattern conv = is_op("conv");
  DFPattern pattern = conv.optional([](DFPattern p) { return is_op("relu")(p); });
  EXPECT_EQ(inside(g, match(pattern, g["b"])), "a b");
  EXPECT_EQ(inside(g, match(pattern, g["a"])), "a");
  EXPECT_EQ(inside(g, match(pattern, g["x"])), "no match");
}

TEST(Match, EveryWayIsVisited) {
  TinyFunction g("x; a = relu(x); b = relu(a); return b");
  DFPattern z = wildcard();
  DFPattern pattern = is_op("relu")(is_op("relu")(z) | z);
  std::vector<std::string> ways;
  for_each_match(pattern, g["b"], {}, [&](const Match& found) {
    ways.push_back(inside(g, found));
    return true;
  });
  EXPECT_THAT(ways, ::testing::ElementsAre("a b", "b"));
}

TEST(Match, ConditionsNarrow) {
  TinyFunction g("x; a = relu(x); b = relu(a); d = exp(a); return add(b, d)");
  DFPattern relu = is_op("relu");
  EXPECT_FALSE(match(relu.where("never", [](const Expr&) { return false; }), g["a"]));
  UseCount uses = [&](const ExprNode* expr) {
    return expr == g["a"].get() ? size_t{2} : size_t{1};
  };
  EXPECT_FALSE(match(is_op("exp")(relu.used_once()), g["d"], uses));
  EXPECT_TRUE(match(is_op("add")(relu.used_once(), wildcard()), g["result"], uses));
}

TEST(Match, TuplesProjectionsAndLeaves) {
  TinyFunction g("x; s = split(x); p = s.1; t = tuple(p, x); k = concat(t); return k");
  EXPECT_EQ(inside(g, match(is_op("concat")(is_tuple({wildcard(), is_var("x")})), g["k"])), "t k");
  EXPECT_EQ(inside(g, match(is_op("concat")(is_tuple()), g["k"])), "t k");
  EXPECT_EQ(inside(g, match(is_op("concat")(is_tuple({wildcard()})), g["k"])), "no match");
  EXPECT_EQ(inside(g, match(is_tuple_get_item(is_op("split"), 1), g["p"])), "s p");
  EXPECT_EQ(inside(g, match(is_tuple_get_item(is_op("split"), 0), g["p"])), "no match");
  EXPECT_TRUE(match(is_var(), g["x"]));
  EXPECT_FALSE(match(is_var("y"), g["x"]));
}

TEST(Match, ScalarsByValue) {
  Expr half = make_scalar(0.5f), two = make_constant(Tensor::from<float>({2}, {0.5f, 0.5f}));
  EXPECT_TRUE(match(is_scalar(0.5), half));
  EXPECT_FALSE(match(is_scalar(0.6), half));
  EXPECT_FALSE(match(is_scalar(0.5), two));
}

TEST(Pattern, PrintsItself) {
  DFPattern pattern = is_op("add")(is_op({"conv", "dense"})(wildcard(), is_constant()), is_var());
  EXPECT_EQ(pattern.to_string(),
            "is_op('add')(is_op('conv', 'dense')(*, is_constant()), is_var())");
  EXPECT_EQ((is_op("relu")(wildcard()) | wildcard()).used_once().to_string(),
            "(is_op('relu')(*) | *).used_once()");
}

}  // namespace
}  // namespace collage
