// Patterns as text: what they match, that they print as what parses back, and what bad ones say.
#include "ir/pattern_text.h"

#include <gmock/gmock.h>

#include "ir/matcher.h"
#include "ir/predicate.h"
#include "ir/tiny_function.h"

namespace collage {
namespace {

DFPattern parsed(const std::string& text) {
  register_tiny_ops();
  Result<DFPattern> pattern = parse_pattern(text);
  EXPECT_TRUE(pattern.ok()) << text << ": " << pattern.status().to_string();
  return pattern.ok() ? *pattern : wildcard();
}

std::string found(const TinyFunction& g, const std::string& text, const std::string& root) {
  std::optional<Match> match_found = match(parsed(text), g[root]);
  if (!match_found) return "no match";
  std::string names;
  for (const Expr& part : match_found->inside)
    names += (names.empty() ? "" : " ") + g.name_of(part);
  return names;
}

TEST(PatternText, Calls) {
  TinyFunction g("x; y; a = conv(x, c1); b = add(a, y); d = relu(b); return d");
  EXPECT_EQ(found(g, "is_op('relu')(*)", "d"), "d");
  EXPECT_EQ(found(g, "is_op('relu')(is_op('add')(is_op('conv')(*, is_constant()), *))", "d"),
            "a b d");
  EXPECT_EQ(found(g, "is_op('relu')(is_op('add')(*, is_constant()))", "d"), "no match");
  EXPECT_EQ(found(g, "is_op(\"exp\", 'relu')(wildcard())", "d"), "d");
  EXPECT_EQ(found(g, "is_op('add')", "b"), "b");
  EXPECT_EQ(found(g, "is_op_up_to('elementwise')(*)", "d"), "d");
  EXPECT_EQ(found(g, "is_op_up_to('elementwise')", "b"), "b") << "operands of one shape";
  EXPECT_EQ(found(g, "is_op_up_to('reduction')", "a"), "no match");
  EXPECT_EQ(found(g, "is_op('conv')(is_var('x'), *)", "a"), "a");
  EXPECT_EQ(found(g, "is_op('conv')(is_var('y'), *)", "a"), "no match");
}

TEST(PatternText, AlternativesAndOptional) {
  TinyFunction g("x; y; a = conv(x, c1); b = add(a, y); d = relu(a); return tuple(b, d)");
  std::string conv_add = "is_op('add')(is_op('conv')(*, *), *) | is_op('conv')(*, *)";
  EXPECT_EQ(found(g, conv_add, "b"), "a b");
  EXPECT_EQ(found(g, conv_add, "a"), "a");
  EXPECT_EQ(found(g, conv_add, "d"), "no match");
  std::string optional = "is_op('conv').optional(is_op('relu')(_))";
  EXPECT_EQ(found(g, optional, "d"), "a d");
  EXPECT_EQ(found(g, optional, "a"), "a");
  EXPECT_EQ(found(g, "is_op('conv').optional(is_op('add')(_, *)).optional(is_op('relu')(_))", "b"),
            "a b");
}

TEST(PatternText, Constraints) {
  TinyFunction g("x; a = relu(x); return a");
  for (const char* text :
       {"is_op('relu')(*).where(level == 0)", "is_op('relu')(*).where(dtype == 'float32')",
        "is_op('relu').where(shape == [4])", "is_op('relu').where(rank == 1)",
        "is_op('relu')(*).used_once()"})
    EXPECT_EQ(found(g, text, "a"), "a") << text;
  for (const char* text :
       {"is_op('relu')(*).where(level == 1)", "is_op('relu')(*).where(dtype == 'int8')",
        "is_op('relu').where(shape == [5])", "is_op('relu').where(rank == 2)"})
    EXPECT_EQ(found(g, text, "a"), "no match") << text;
}

TEST(PatternText, PredicatesComputeAndCompare) {
  TinyFunction g("x; y; a = conv(x, c1); b = add(a, y); return b");
  const auto holds = [&](const std::string& predicate) {
    return found(g, "is_op('add')($a: is_op('conv')(*, $w), *).where(" + predicate + ")", "b") !=
           "no match";
  };
  for (const char* text : {"1 + 2 * 3 == 7",
                           "(1 + 2) * 3 == 9",
                           "7 % 4 == 3",
                           "3 / 2 == 1.5",
                           "3 -2 == 1",
                           "2 > 1",
                           "1 >= 1 and 1 <= 1",
                           "not 1 > 2",
                           "not (1 > 2 or 2 > 3)",
                           "1 > 2 or 2 > 1",
                           "'a' != 'b'",
                           "op == 'add' and $a.op == 'conv'",
                           "shape == $a.shape",
                           "shape[0] == 4",
                           "shape[-1] == 4",
                           "size == 4 and rank == 1",
                           "$w.is_constant and not $a.is_constant",
                           "args[0].op == 'conv'",
                           "args[0].args[1].is_constant",
                           "$a.args[1].dtype == dtype",
                           "level == 0 and level == False",
                           "$w.size > 1 or 1 / 0 == 1",
                           "True"})
    EXPECT_TRUE(holds(text)) << text;
  // What is unknown is neither so nor not so.
  for (const char* text :
       {"1 > 2", "1 / 0 == 1", "not 1 / 0 == 1", "1 / 0 != 1", "1 % 0 == 0 or 1 > 2",
        "$w.op == 'conv'", "not $w.op == 'conv'", "shape[1] == 4", "shape[-2] == 4",
        "args[7].rank == 1", "'a' < 'b'", "$w.value == 0", "not (1 / 0 == 1 or 1 > 2)", "shape",
        "False", "None", "args[1].args[0].rank == 1", "0"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(PatternText, PredicatesKnowRegisteredProperties) {
  TinyFunction g("x; y; a = conv(x, c1); b = add(a, y); return b");
  const auto takes = [](const Expr& expr) -> std::optional<AttrValue> {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr) return std::nullopt;
    return AttrValue(static_cast<int64_t>(call->args.size()));
  };
  EXPECT_FALSE(parse_pattern("is_op('add').where(taken == 2)"));
  ASSERT_TRUE(register_property("taken", takes));
  EXPECT_EQ(found(g, "is_op('add')($a, $y).where(taken == 2 and $a.taken == 2)", "b"), "b");
  EXPECT_EQ(found(g, "is_op('add')($a, $y).where(args[0].taken == 3)", "b"), "no match");
  EXPECT_EQ(found(g, "is_op('add')($a, $y).where(not $y.taken == 2)", "b"), "no match");  // unknown
  EXPECT_EQ(parse_pattern("is_op('add').where( taken==2 )")->to_string(),
            "is_op('add').where(taken == 2)");
  for (const char* name : {"taken", "rank", "level", "args", "not", "True", "", "two words", "1st"})
    EXPECT_THAT(register_property(name, takes).to_string(), testing::HasSubstr("a property"))
        << name;
}

TEST(PatternText, PredicatesKnowOnlyTheAlternativeThatWasTaken) {
  TinyFunction g("x; a = conv(x, c1); b = relu(a); return b");
  const std::string either = "(is_op('relu')($a: is_op('conv')) | is_op('conv')($b, *))";
  EXPECT_EQ(found(g, either + ".where($a.rank == 1)", "b"), "a b");
  EXPECT_EQ(found(g, either + ".where($a.rank == 1)", "a"), "no match");
  EXPECT_EQ(found(g, either + ".where($a.rank == 1 or $b.rank == 1)", "a"), "a");
}

TEST(PatternText, APredicateIsAskedForEachOrderOfArguments) {
  TinyFunction g("x; y; a = conv(x, c1); b = add(a, y); return b");
  EXPECT_EQ(found(g, "is_op('add')($x, $y).where($y.op == 'conv')", "b"), "b");
}

TEST(PatternText, APredicateOfManyOperatorsIsRefused) {
  register_tiny_ops();
  for (const char* more : {" + 1", "[0]"}) {
    std::string text = "is_op('relu').where(level";
    for (int i = 0; i < 100000; ++i) text += more;
    EXPECT_THAT(parse_pattern(text + " == 1)").status().to_string(),
                ::testing::HasSubstr("a predicate of more than 400 operators"));
  }
  EXPECT_THAT(parse_pattern("is_op('relu').where(" + std::string(100000, '(')).status().to_string(),
              ::testing::HasSubstr("a predicate of more than 400 operators"));
}

TEST(PatternText, WhatIsWrappedPrintsWithAName) {
  EXPECT_EQ(
      parsed("is_op('conv').optional(is_op('add')(_, _)).optional(is_op('exp')(_))").to_string(),
      "(is_op('exp')(($_1: (is_op('add')(($_0: is_op('conv')), $_0) | $_0))) | $_1)");
}

TEST(PatternText, AttributesCompareByValue) {
  EXPECT_TRUE(attr_matches(AttrValue(1.0), AttrValue(int64_t{1})));
  EXPECT_TRUE(attr_matches(AttrValue(Ints{1, 2}), AttrValue(Ints{1, 2})));
  EXPECT_TRUE(attr_matches(AttrValue(Ints{2}), AttrValue(int64_t{2})));
  EXPECT_TRUE(attr_matches(AttrValue(DType::kInt8), AttrValue(std::string("int8"))));
  EXPECT_FALSE(attr_matches(AttrValue(Ints{1, 2}), AttrValue(int64_t{1})));
  EXPECT_FALSE(attr_matches(AttrValue(None{}), AttrValue(int64_t{0})));
  EXPECT_FALSE(attr_matches(AttrValue(std::string("1")), AttrValue(int64_t{1})));
}

TEST(PatternText, TuplesAndProjections) {
  TinyFunction g("x; s = split(x); p = s.1; t = tuple(p, x); k = concat(t); return k");
  EXPECT_EQ(found(g, "is_op('concat')((*, is_var()))", "k"), "t k");
  EXPECT_EQ(found(g, "is_op('concat')(is_tuple())", "k"), "t k");
  EXPECT_EQ(found(g, "is_op('concat')((*,))", "k"), "no match");
  EXPECT_EQ(found(g, "is_op('split')(*).1", "p"), "s p");
  EXPECT_EQ(found(g, "is_op('split')(*).0", "p"), "no match");
  EXPECT_EQ(found(g, "is_tuple_get_item(is_op('split'))", "p"), "s p");
}

TEST(PatternText, OneNameIsOneExpression) {
  TinyFunction g("x; y; a = sigmoid(x); b = multiply(x, a); d = multiply(y, a); return add(b, d)");
  std::string swish = "is_op('multiply')($x, is_op('sigmoid')($x))";
  EXPECT_EQ(found(g, swish, "b"), "a b");
  EXPECT_EQ(found(g, swish, "d"), "no match");
  EXPECT_EQ(found(g, "is_op('multiply')($x: is_var('x'), is_op('sigmoid')($x))", "b"), "a b");
}

TEST(PatternText, DominatorsTakeWhatIsBetween) {
  TinyFunction g(
      "x; a = conv(x, c1); b = relu(a); d = exp(a); e = tanh(d); f = add(b, e); h = add(b, x); "
      "return tuple(f, h)");
  std::string diamond = "dominator(is_op('conv'), is_op_up_to('elementwise'), is_op('add')(*, *))";
  EXPECT_EQ(found(g, diamond, "f"), "a b d e f");
  EXPECT_EQ(found(g, diamond, "h"), "no match");  // x flows in from elsewhere
  EXPECT_EQ(found(g, "dominator(is_op('conv'), is_op('relu'), is_op('add')(*, *))", "f"),
            "no match");
  // The child may be more than one call, and constants flow in anywhere.
  TinyFunction k("x; a = conv(x, c1); b = add(a, c2); d = exp(b); e = relu(d); return e");
  EXPECT_EQ(found(k,
                  "dominator(is_op('conv'), is_op_up_to('broadcast'), is_op('relu')(is_op('exp')"
                  "(*)))",
                  "e"),
            "a b d e");
}

TEST(PatternText, FunctionsByBodyAndAttributes) {
  register_tiny_ops();
  Expr p = make_var("p", TensorType{{4}, DType::kFloat32});
  Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  Function inner = make_function({p}, *make_call("relu", {p}), {{"Composite", "my.relu"}});
  Expr call = *make_function_call(inner, {*make_call("exp", {x})});
  auto inside = [&](const std::string& text) {
    std::optional<Match> found = match(parsed(text), call);
    return found ? static_cast<int>(found->inside.size()) : -1;
  };
  EXPECT_EQ(inside("is_function([*], is_op('relu')(*))(*)"), 1);
  EXPECT_EQ(inside("is_function([*], is_op('relu')(*))(is_op('exp'))"), 2);
  EXPECT_EQ(inside("is_function([$p], is_op('relu')($p))(*)"), 1);
  EXPECT_EQ(inside("is_function([*], is_op('exp')(*))(*)"), -1);
  EXPECT_EQ(inside("is_function([*, *], is_op('relu')(*))(*)"), -1);
  EXPECT_EQ(inside("is_function().where(Composite == 'my.relu')(*)"), 1);
  EXPECT_EQ(inside("is_function().where(Composite == 'your.relu')(*)"), -1);
  EXPECT_EQ(inside("is_op('relu')(*)"), -1);
}

TEST(PatternText, PrintsWhatParsesBack) {
  for (const char* text : {"*",
                           "is_var()",
                           "is_var('x')",
                           "is_constant()",
                           "is_constant().has_value(0.5)",
                           "is_op('relu')",
                           "is_op('relu')(*)",
                           "is_op('add', 'multiply')(*, is_constant())",
                           "is_op_up_to('broadcast')(*)",
                           "is_tuple()",
                           "is_tuple(*, is_var())",
                           "is_tuple_get_item(is_op('split')(*), 1)",
                           "is_tuple_get_item(is_op('split')(*))",
                           "(is_op('relu')(*) | is_op('exp')(*)).where(level == 2)",
                           "is_op('relu')(*).where(shape == [1, 3] and dtype == 'float32')",
                           "is_op('relu')($x).where($x.args[0].shape[-1] % 8 == 0 or 0.5 < level)",
                           "is_op('multiply')($x, is_op('sigmoid')($x))",
                           "is_op('multiply')(($x: is_op('exp')), is_op('sigmoid')($x))",
                           "is_op('relu')(*).used_once()",
                           "is_function([*], is_op('relu')(*))(*)",
                           "dominator(is_op('conv'), is_op('relu')(*), is_op('add')(*, *))"})
    EXPECT_EQ(parsed(text).to_string(), text);
  for (const char* text : {"is_op('conv').optional(is_op('relu')(_))", "is_op('split')(*).1"}) {
    std::string printed = parsed(text).to_string();
    EXPECT_EQ(parsed(printed).to_string(), printed);
  }
}

TEST(PatternText, ErrorsNameTheColumnAndWhatWasExpected) {
  register_tiny_ops();
  const std::pair<const char*, const char*> kCases[] = {
      {"", "column 1: expected a pattern, found the end of the text"},
      {"is_op('relu')(", "column 15: expected a pattern, found the end of the text"},
      {"is_op('relu')(*", "column 16: expected ',' or ')', found the end of the text"},
      {"is_op('relu')(*))", "column 17: expected '|' or the end of the text, found ')'"},
      {"is_op(relu)(*)", "column 7: expected an operator's name in quotes, found 'relu'"},
      {"is_op('rellu')(*)", "column 7: unknown operator 'rellu'"},
      {"is_op('relu)(*)", "column 7: expected a closing quote for 'relu)(*)"},
      {"is_op 'relu'", "column 7: expected '(' after is_op, found the string 'relu'"},
      {"is_opp('relu')",
       "column 1: expected a pattern, found 'is_opp': there are *, is_op, is_op_up_to, is_var, "
       "is_constant, wildcard, is_tuple, is_tuple_get_item, is_function, dominator"},
      {"is_op('relu')(*, *)", "column 1: 'relu' takes 1 arguments, not 2"},
      {"is_op('relu')(*) |", "column 19: expected a pattern, found the end of the text"},
      {"is_op('relu').where(levle == 1)",
       "column 21: unknown property 'levle': there are args[…], op, shape, rank, dtype, size, "
       "value, "
       "is_constant, level"},
      {"is_op('relu')($x).where($x.levle == 1)",
       "column 28: unknown property 'levle': there are args[…], op, shape, rank, dtype, size, "
       "value, "
       "is_constant, and attributes of operators"},
      {"is_op('relu').where($x.rank == 1)", "column 21: there is no $x before"},
      {"is_op('relu')($x).where($x == 1)", "column 28: expected '.' and a property, found '=='"},
      {"is_op('relu').where(rank ==)",
       "column 28: expected a value: a number, a string, True, False, None or a list, found ')'"},
      {"is_op('relu').where(rank == 1 rank)", "column 31: expected ')', found 'rank'"},
      {"is_op('relu').where((rank == 1)", "column 32: expected ')', found the end of the text"},
      {"is_op('relu').where(shape[x] == 1)", "column 27: expected an index, found 'x'"},
      {"is_op('relu').where(args.rank == 1)", "column 25: expected '[' after args, found '.'"},
      {"is_op('relu').has_colour(4)",
       "column 15: unknown constraint 'has_colour': there are optional, has_value, used_once, "
       "where"},
      {"is_op('relu')(_)", "column 15: '_' stands only inside .optional(…)"},
      {"dominator(*, *)", "column 1: dominator takes 3 patterns (parent, path, child), not 2"},
      {"is_op_up_to('small')",
       "column 13: expected one of 'elementwise', 'broadcast', 'injective', 'reduction', 'anchor', "
       "'opaque', found the string 'small'"},
      {"is_op('relu')(?)", "column 15: expected a pattern, found '?'"},
      {"$x: $x: *", "column 1: $x is defined twice"},
  };
  for (const auto& [text, message] : kCases) {
    Result<DFPattern> pattern = parse_pattern(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.status().to_string(), message);
    EXPECT_EQ(pattern.status().code(), ErrorCode::kUsage);
  }
  std::string deep(100000, '(');
  EXPECT_THAT(parse_pattern(deep).status().to_string(),
              ::testing::HasSubstr("nested more than 200 levels deep"));
}

}  // namespace
}  // namespace collage
