// Patterns as text: what they match, that they print as what parses back, and what bad ones say.
#include "ir/pattern_text.h"

#include <gmock/gmock.h>

#include "ir/matcher.h"
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
  EXPECT_EQ(found(g, "is_op_up_to('elementwise')", "b"), "no match");
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
       {"is_op('relu')(*){level: 0}", "is_op('relu')(*).has_dtype('float32')",
        "is_op('relu').has_shape((4,))", "is_op('relu').has_shape((*,))",
        "is_op('relu').has_rank(1)", "is_op('relu').has_type(Tensor[(4), float32])",
        "is_op('relu')(*).used_once()"})
    EXPECT_EQ(found(g, text, "a"), "a") << text;
  for (const char* text : {"is_op('relu')(*){level: 1}", "is_op('relu')(*).has_dtype('int8')",
                           "is_op('relu').has_shape((5,))", "is_op('relu').has_shape((*, *))",
                           "is_op('relu').has_rank(2)", "is_op('relu').has_type(Tensor[(4), int8])",
                           "is_op('relu').has_type(float32)"})
    EXPECT_EQ(found(g, text, "a"), "no match") << text;
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
  EXPECT_EQ(inside("is_function(){Composite: 'my.relu'}(*)"), 1);
  EXPECT_EQ(inside("is_function(){Composite: 'your.relu'}(*)"), -1);
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
                           "(is_op('relu')(*) | is_op('exp')(*)){level: 2}",
                           "is_op('relu')(*).has_shape((4,))",
                           "is_op('relu')(*).has_shape((1, *, 3))",
                           "is_op('relu')(*).has_dtype('float32')",
                           "is_op('relu')(*).has_type(Tensor[(1, 3), float32])",
                           "is_op('relu')(*).has_rank(2)",
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
      {"", "column 1: expected a pattern, found the end of the pattern"},
      {"is_op('relu')(", "column 15: expected a pattern, found the end of the pattern"},
      {"is_op('relu')(*", "column 16: expected ',' or ')', found the end of the pattern"},
      {"is_op('relu')(*))", "column 17: expected '|' or the end of the pattern, found ')'"},
      {"is_op(relu)(*)", "column 7: expected an operator's name in quotes, found 'relu'"},
      {"is_op('rellu')(*)", "column 7: unknown operator 'rellu'"},
      {"is_op('relu)(*)", "column 7: expected a closing quote for 'relu)(*)"},
      {"is_op 'relu'", "column 7: expected '(' after is_op, found the string 'relu'"},
      {"is_opp('relu')",
       "column 1: expected a pattern, found 'is_opp': there are *, is_op, is_op_up_to, is_var, "
       "is_constant, wildcard, is_tuple, is_tuple_get_item, is_function, dominator"},
      {"is_op('relu')(*, *)", "column 1: 'relu' takes 1 arguments, not 2"},
      {"is_op('relu')(*) |", "column 19: expected a pattern, found the end of the pattern"},
      {"is_op('relu')(*){levle: 1}", "column 18: 'relu' has no attribute 'levle': it has level"},
      {"is_op('relu')(*){level 1}", "column 24: expected ':', found '1'"},
      {"is_op('relu')(*){level: }",
       "column 25: expected a value: a number, a string, True, False, None or a list, found '}'"},
      {"is_op('relu')(*){level: 1", "column 26: expected ',' or '}', found the end of the pattern"},
      {"is_op('relu').has_dtype('float33')", "column 25: unknown dtype 'float33'"},
      {"is_op('relu').has_shape(4)", "column 25: expected '(' before the dimensions, found '4'"},
      {"is_op('relu').has_colour(4)",
       "column 15: unknown constraint 'has_colour': there are optional, has_dtype, has_shape, "
       "has_rank, has_type, has_value, used_once"},
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
