// Rules as text: what they find, text in and text out; that they print as what parses back and
// finds the same; what bad ones say.
//
// The cases of rule_cases.txt are a rule, then a module: the candidates come out, a line each.
// Labelled parts stand in brackets. With COLLAGE_REWRITE_EXPECTED=1 the file is written anew with
// what comes out, for review.
#include "partition/rule_text.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "case_file.h"
#include "ir/text_parser.h"
#include "ops/registry.h"
#include "partition/random_graph.h"
#include "partition/rule_fixture.h"
#include "test_paths.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string shown(const DataflowGraph& graph, const SubGraph& sub_graph) {
  std::string text;
  IndexSet left = sub_graph.inside();
  sub_graph.inside().for_each([&](PostDfsIndex i) {
    if (!left.contains(i)) return;
    std::string part;
    for (const SubGraph::Nested& nested : sub_graph.nested())
      if (nested.sub_graph->inside().contains(i)) {
        part = nested.label + "[" + shown(graph, *nested.sub_graph) + "]";
        left -= nested.sub_graph->inside();
      }
    const auto* call = as<CallNode>(graph.node(i).expr);
    if (part.empty()) part = call != nullptr ? call->op->name : "tuple";
    text += (text.empty() ? "" : " ") + part;
  });
  return text;
}

// A labelled sub-graph holds itself as its one nested part.
std::string shown(const DataflowGraph& graph, const CandidatePartition& candidate) {
  std::string text;
  const SubGraph& whole = candidate.sub_graph;
  for (const SubGraph::Nested& nested : whole.nested())
    if (nested.sub_graph->inside() == whole.inside())
      text = nested.label + "[" + shown(graph, *nested.sub_graph) + "]";
  if (text.empty()) text = shown(graph, whole);
  const size_t results = whole.exit().size();
  return text + (results > 1 ? fmt::format(", {} results", results) : "");
}

std::vector<CandidatePartition> found_by(const DataflowGraph& graph, const PartitionRulePtr& rule) {
  return all_candidates(graph, spec_of("t", rule));
}

TEST(RuleCases, TextInTextOut) {
  register_all_ops();
  const fs::path path = COLLAGE_TESTS_DIR "/partition/rule_cases.txt";
  CaseFile file = read_cases(path);
  for (Case& c : file.cases) {
    SCOPED_TRACE(c.intent);
    const size_t module = c.input.find("def @main");
    const Result<RuleText> rule = parse_rule(c.input.substr(0, module));
    ASSERT_TRUE(rule.ok()) << rule.status().to_string();
    const Result<Module> parsed = parse_module(c.input.substr(module));
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    const DataflowGraph graph(parsed->main());
    std::string found;
    for (const CandidatePartition& candidate : found_by(graph, rule->rule))
      found += shown(graph, candidate) + "\n";
    if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr)
      c.expected = found;
    else
      EXPECT_EQ(trimmed(found), trimmed(c.expected));
  }
  EXPECT_GT(file.cases.size(), 12u);
  if (std::getenv("COLLAGE_REWRITE_EXPECTED") != nullptr) write_cases(path, file);
}

// Rule trees over the made-up operators.
class RandomRule {
 public:
  explicit RandomRule(uint64_t seed) : rng_(seed) { register_tiny_ops(); }

  std::string make(size_t depth) {
    if (depth == 0 || below(5) == 0) return pattern(2);
    const std::string inner = make(depth - 1);
    switch (below(7)) {
      case 0:
        return "union(" + inner + ", " + make(depth - 1) + ")";
      case 1:
        return fmt::format("composite('l{}', {})", below(9), inner);
      case 2:
        return fmt::format("combine({}, joins: {}, max_depth: {}{})", inner,
                           any({"any", "native",
                                "[anchor -> elementwise..broadcast, "
                                "elementwise -> elementwise]"}),
                           1 + below(4), any({"", ", max_splits: 1", ", max_ops: 3"}));
      case 3:
        return fmt::format("only_valid({}{})", inner, any({"", ", max_exits: 2, max_depth: 3"}));
      case 4:
        return fmt::format("max_coalesce({}{})", inner, any({"", ", max_depth: 3"}));
      case 5:
        return fmt::format("horizontal({}{})", inner,
                           any({"", ", max_siblings: 2", ", where: $a.level == $b.level"}));
      default:
        return fmt::format("vertical({}{})", inner, any({"", ", where: $a.op != 'pool'"}));
    }
  }

 private:
  size_t below(size_t n) { return rng_() % n; }
  std::string any(std::vector<std::string> texts) { return texts[below(texts.size())]; }
  std::string pattern(size_t depth) {
    if (depth == 0)
      return any({"*", "is_constant()", "is_var()", "$x", "is_op('relu')", "is_tuple()"});
    const std::string inner = pattern(depth - 1);
    return any({"is_op('relu', 'exp')(" + inner + ")", "is_op_up_to('anchor')",
                "is_op('add')($x, " + inner + ")",
                "(is_op('conv')(*, " + inner + ") | is_op('pool'))",
                "is_op('add')($y, $z: is_op('relu')).where($y.shape == $z.shape and not level > 1)",
                "is_op('conv').optional(is_op('relu')(_).where(level == 0))",
                "is_op_up_to('broadcast').where(rank == 1 or (size - 4) * 2 < 3 and level != 'a')",
                "dominator(is_op('conv'), is_op_up_to('elementwise'), is_op('add')(*, *))",
                "is_op('exp')(" + inner + ").used_once()"});
  }

  std::mt19937_64 rng_;
};

TEST(RuleText, RandomTreesPrintAsWhatParsesBackAndFindsTheSame) {
  size_t candidates = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::string text = RandomRule(seed).make(seed % 5);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, text));
    const Result<RuleText> rule = parse_rule(text);
    ASSERT_TRUE(rule.ok()) << rule.status().to_string();
    const Result<RuleText> again = parse_rule(rule->text);
    ASSERT_TRUE(again.ok()) << rule->text << ": " << again.status().to_string();
    EXPECT_EQ(again->text, rule->text);
    const DataflowGraph graph(RandomFunction(seed).make(25));
    const auto found = found_by(graph, rule->rule), same = found_by(graph, again->rule);
    ASSERT_EQ(found.size(), same.size()) << rule->text;
    for (size_t c = 0; c < found.size(); ++c) {
      EXPECT_EQ(found[c].sub_graph.inside(), same[c].sub_graph.inside());
      EXPECT_EQ(found[c].truncated, same[c].truncated);
    }
    candidates += found.size();
  }
  EXPECT_GT(candidates, 300u);
}

TEST(RuleText, PrintsItsCanonicalForm) {
  register_tiny_ops();
  const std::pair<const char*, const char*> kCases[] = {
      {"a=is_op( \"relu\" ) ; # chains\ncombine(a,max_splits:0)",
       "a = is_op('relu'); combine(a, max_splits: 0)"},
      {"combine(own(), joins: [elementwise .. elementwise -> anchor,])", ""},
      {"combine(own(), joins: [elementwise .. elementwise -> anchor])",
       "combine(own(), joins: [elementwise -> anchor])"},
      {"is_op('multiply')($x, is_op('sigmoid')($x)) | is_op('exp')",
       "(is_op('multiply')($x, is_op('sigmoid')($x)) | is_op('exp'))"},
      {"is_op('relu').where((level==1)and not True)",
       "is_op('relu').where((level == 1) and not True)"},
      {"is_op('relu').where(size -1 > 2)", "is_op('relu').where(size + -1 > 2)"}};
  for (const auto& [text, printed] : kCases) {
    const Result<RuleText> rule = parse_rule(text);
    if (*printed == '\0') {
      EXPECT_FALSE(rule.ok()) << text;
      continue;
    }
    ASSERT_TRUE(rule.ok()) << rule.status().to_string();
    EXPECT_EQ(rule->text, printed);
  }
}

TEST(RuleText, OwnIsTheBackendsRule) {
  register_tiny_ops();
  const TinyGraph g(kConvChain);
  const auto own = spec_of("t", ops({"conv"}));
  const std::string text = "union(composite('mine', is_op('relu')(is_op('add'))), own())";
  EXPECT_EQ(parse_rule(text)->rule, nullptr);
  EXPECT_EQ(parse_rule(text)->text, text);
  EXPECT_THAT(names(g, parse_rule(text, own.get())->rule), ::testing::ElementsAre("a", "b d"));
}

TEST(RuleText, SaysWhetherKernelsOfItJoinAnything) {
  register_tiny_ops();
  const auto any = [](const std::string& text) { return parse_rule(text)->joins_anything; };
  EXPECT_TRUE(any("combine(is_op('relu'), joins: any)"));
  EXPECT_TRUE(any("only_valid(union(is_op('exp'), combine(is_op('relu'), joins: any)))"));
  EXPECT_FALSE(any("combine(combine(is_op('relu'), joins: any))"));
  EXPECT_FALSE(any("is_op('relu')"));
}

TEST(RuleText, ErrorsNameThePlaceAndWhatWasExpected) {
  register_tiny_ops();
  const std::pair<std::string, const char*> kCases[] = {
      {"", "column 1: expected a pattern, found the end of the text"},
      {"is_op('relu'))", "column 14: expected the end of the text, found ')'"},
      {"union(is_op('relu')", "column 20: expected ')', found the end of the text"},
      {"union()", "column 7: expected a pattern, found ')'"},
      {"combine(is_op('relu'), joins: [anchor])", "column 38: expected '->', found ']'"},
      {"combine(is_op('relu'), joins: [injective..broadcast -> anchor])",
       "column 43: 'broadcast' comes before 'injective'"},
      {"combine(is_op('relu'), max_ops: 1, max_ops: 2)", "column 36: 'max_ops' is given twice"},
      {"combine(is_op('relu'), max_ops 1)", "column 32: expected ':', found '1'"},
      {"horizontal(is_op('conv'), max_siblings: 1)",
       "column 41: expected a whole number from 2 to 1000000, found '1'"},
      {"composite(relu, is_op('relu'))", "column 11: expected a label in quotes, found 'relu'"},
      {"composite('a b', is_op('relu'))",
       "column 11: expected a label of letters, digits, '_', '-' and '.'"},
      {"a = is_op('relu')",
       "column 18: expected ';' after the definition, found the end of the text"},
      {"a = is_op('relu');\nunion(a,\n  is_op('rellu'))",
       "line 3, column 9: unknown operator 'rellu'"},
      {"vertical(is_op('conv'), where: level == 1)",
       "column 32: expected a property of $a or of $b, the two anchors"},
      {"vertical(is_op('conv'), where: $c.level == 1)",
       "column 32: expected a property of $a or of $b, the two anchors"},
      {"own(1)", "column 5: expected ')', found '1'"}};
  for (const auto& [text, message] : kCases) {
    const Result<RuleText> rule = parse_rule(text);
    ASSERT_FALSE(rule.ok()) << text;
    EXPECT_EQ(rule.status().to_string(), message);
    EXPECT_EQ(rule.status().code(), ErrorCode::kUsage);
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "union(";
  EXPECT_THAT(parse_rule(deep).status().to_string(), HasSubstr("nested more than 100 levels deep"));
}

TEST(RuleText, IsAFileWithoutParentheses) {
  register_tiny_ops();
  const fs::path folder = fs::path(::testing::TempDir()) / "rule_text_test";
  fs::create_directories(folder);
  std::ofstream(folder / "good.rules") << "// Of one operator.\nr = is_op('relu');\nunion(r)\n";
  std::ofstream(folder / "bad.rules") << "union(\n  r)\n";
  const Result<RuleText> good = read_rule("good.rules", nullptr, folder);
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  EXPECT_EQ(good->text, "r = is_op('relu'); union(r)");
  EXPECT_THAT(read_rule("bad.rules", nullptr, folder).status().to_string(),
              HasSubstr("bad.rules: line 2, column 3: expected a rule, found 'r'"));
  EXPECT_EQ(read_rule("absent", nullptr, folder).status().code(), ErrorCode::kUsage);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace collage
