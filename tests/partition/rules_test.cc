#include <gmock/gmock.h>

#include "partition/rule_fixture.h"
#include "partition/rules/anchor_epilogue.h"
#include "partition/rules/anchor_union.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/composite.h"
#include "partition/rules/df_pattern.h"
#include "partition/rules/host.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/only_valid.h"
#include "partition/rules/pattern_table.h"
#include "partition/rules/union_rule.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(DFPatternRule, FindsEveryOverlappingMatch) {
  TinyGraph g(kConvChain);
  DFPattern conv = is_op("conv")(wildcard(), is_constant());
  DFPattern pattern = conv.optional([](DFPattern p) { return is_op("add")(p, wildcard()); });
  EXPECT_THAT(names(g, make<DFPatternPartitionRule>("p", pattern)), ElementsAre("a", "a b"));
}

TEST(DFPatternRule, RefusesWhatThePredicateRefuses) {
  TinyGraph g(kConvChain);
  auto refuse = [](const Match& match) { return match.call("conv") == nullptr; };
  EXPECT_THAT(names(g, make<DFPatternPartitionRule>("p", is_op({"conv", "relu"}), refuse)),
              ElementsAre("d"));
}

TEST(DFPatternRule, DropsAMatchWhoseInnerValueIsUsedElsewhere) {
  TinyGraph g("x; a = conv(x, c1); b = relu(a); return add(a, b)");
  DFPattern pattern = is_op("relu")(is_op("conv"));
  EXPECT_THAT(names(g, make<DFPatternPartitionRule>("p", pattern)), ElementsAre());
  EXPECT_THAT(names(g, make<DFPatternPartitionRule>("p", pattern, MatchPredicate{},
                                                    SubGraphConfig{0, 0, true})),
              ElementsAre("a b"));
}

TEST(OpRules, TakeTheTuplesOfTheirCallsAlong) {
  TinyGraph g("x; y; t = tuple(x, y); k = concat(t); r = reshape(k); e = sort(r); return e");
  EXPECT_THAT(names(g, make<DFPatternPartitionRule>("kinds", is_op_up_to(FusionKind::kAnchor))),
              ElementsAre("t k", "r"));
  EXPECT_THAT(names(g, make<HostPartitionRule>()), ElementsAre("t k", "e"));
}

// What limits cut short is marked, and nothing else.
TEST(Truncation, IsMarkedByEachRuleWithALimit) {
  TinyGraph g(kConvChain);
  PartitionRulePtr all = make<CombineByPrimitivesPartitionRule>("all", any_op());
  EXPECT_THAT(names_of_truncated(g, all), ElementsAre());
  EXPECT_THAT(names_of_truncated(g, make<OnlyValidPartitionRule>("v", all, SubGraphConfig{2})),
              UnorderedElementsAre("a", "b", "d", "a b", "b d"))
      << "those in 'a b d', which is too deep";

  CombineConfig limits;
  limits.maximal = false;
  limits.max_depth = 2;
  EXPECT_THAT(names_of_truncated(g, make<CombineByPrimitivesPartitionRule>("c", any_op(), limits)),
              UnorderedElementsAre("a b", "b d"));
  limits.max_depth = 0;
  limits.max_ops = 2;
  EXPECT_THAT(names_of_truncated(g, make<CombineByPrimitivesPartitionRule>("c", any_op(), limits)),
              UnorderedElementsAre("a b", "b d"));
  limits.max_ops = 8;
  limits.max_per_exit = 1;
  EXPECT_THAT(names_of_truncated(g, make<CombineByPrimitivesPartitionRule>("c", any_op(), limits)),
              UnorderedElementsAre("a", "b", "d"))
      << "one candidate an exit: those alone";

  auto any_step = [](const EpilogueStep&) { return true; };
  auto epilogue = [&](size_t steps) {
    return make<AnchorEpiloguePartitionRule>("e", is_op("conv")(wildcard(), wildcard()),
                                             MatchPredicate{}, any_step, steps);
  };
  EXPECT_THAT(names_of_truncated(g, epilogue(1)), ElementsAre("a b"));
  EXPECT_THAT(names_of_truncated(g, epilogue(3)), ElementsAre());
  EXPECT_THAT(names_of_truncated(g, epilogue(0)), ElementsAre()) << "it is to be alone";

  TinyGraph siblings("x; a = conv(x, c1); b = conv(x, c2); d = conv(x, c3); return tuple(a, b, d)");
  auto horizontal = [&](size_t most) {
    return make<HorizontalPartitionRule>("h", ops({"conv"}),
                                         HorizontalPartitionRule::Options{.max_siblings = most});
  };
  EXPECT_THAT(names_of_truncated(siblings, horizontal(2)), ElementsAre("a b"));
  EXPECT_THAT(names_of_truncated(siblings, horizontal(3)), ElementsAre());

  EXPECT_THAT(names_of_truncated(siblings, make<MaxCoalescePartitionRule>(
                                               "m", any_op(), SubGraphConfig{0, 0, true})),
              ElementsAre());
  EXPECT_THAT(
      names_of_truncated(g, make<MaxCoalescePartitionRule>("m", any_op(), SubGraphConfig{2})),
      UnorderedElementsAre("a b", "d e"));
}

TEST(CompositeRule, LabelsTheFunction) {
  TinyGraph g(kConvChain);
  auto candidates = run(g, make<CompositePartitionRule>("my.conv", ops({"conv"})));
  ASSERT_EQ(candidates.size(), 1u);
  Function function = candidates[0].function(g.graph());
  EXPECT_EQ(function->attrs.integer("Primitive"), 1);
  EXPECT_EQ(function->attrs.string("Compiler"), "test");
  const auto* call = as<CallNode>(function->body);
  ASSERT_NE(as<FunctionNode>(call->callee), nullptr);
  EXPECT_EQ(as<FunctionNode>(call->callee)->attrs.string("Composite"), "my.conv");
}

TEST(UnionRule, KeepsTheFirstOfEqualCandidates) {
  TinyGraph g(kConvChain);
  auto candidates =
      run(g, make<UnionPartitionRule>(
                 "u", std::vector<PartitionRulePtr>{
                          make<CompositePartitionRule>("first", ops({"conv", "sort"})),
                          make<CompositePartitionRule>("second", ops({"relu", "conv"}))}));
  std::vector<std::string> labels;
  for (const auto& candidate : candidates)
    labels.push_back(g.names(candidate.sub_graph.inside()) + ":" + candidate.rule_name);
  EXPECT_THAT(labels, ElementsAre("a:first", "d:second", "e:first"));
}

TEST(DFPatternRule, TakesABroadcastOfEqualShapesForElementwise) {
  register_tiny_ops();
  Expr x = make_var("x", TensorType{{4, 3}, DType::kFloat32});
  Expr bias = make_var("bias", TensorType{{3}, DType::kFloat32});
  Expr biased = *make_call("add", {x, bias});
  Expr sum = *make_call("add", {biased, x});
  DataflowGraph graph(make_function({x, bias}, sum));
  auto kind = [&](const Expr& expr) { return SubGraph::of(graph, {graph.index_of(expr)}).kind(); };
  EXPECT_EQ(kind(biased), FusionKind::kBroadcast);
  EXPECT_EQ(kind(sum), FusionKind::kElementwise);
  PartitionSpec spec{"spec", nullptr, {}};
  std::vector<CandidatePartition> found =
      DFPatternPartitionRule("by_kind", is_op_up_to(FusionKind::kElementwise))
          .all_candidates(graph, std::make_shared<PartitionSpec>(spec));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].sub_graph.inside().contains(graph.index_of(sum)));
}

TEST(OnlyValidRule, AppliesTheLimits) {
  TinyGraph g(kConvChain);
  PartitionRulePtr all = make<CombineByPrimitivesPartitionRule>("all", any_op());
  EXPECT_THAT(names(g, all), UnorderedElementsAre("a", "b", "d", "e", "a b", "b d", "a b d"));
  EXPECT_THAT(names(g, make<OnlyValidPartitionRule>("valid", all, SubGraphConfig{2})),
              UnorderedElementsAre("a", "b", "d", "e", "a b", "b d"));
}

TEST(AnchorEpilogueRule, GivesEveryPrefix) {
  TinyGraph g(kConvChain);
  auto elementwise = [](const EpilogueStep& step) {
    return step.call.op->kind <= FusionKind::kBroadcast;
  };
  EXPECT_THAT(names(g, make<AnchorEpiloguePartitionRule>("conv", is_op("conv"), MatchPredicate{},
                                                         elementwise)),
              ElementsAre("a", "a b", "a b d"));
  EXPECT_THAT(names(g, make<AnchorEpiloguePartitionRule>("conv", is_op("conv"), MatchPredicate{},
                                                         elementwise, 1)),
              ElementsAre("a", "a b"));
}

TEST(AnchorEpilogueRule, TellsThePredicateWhereTheValueGoes) {
  TinyGraph g("x; y; a = conv(x, c1); b = subtract(y, a); d = relu(b); return d");
  std::vector<std::string> steps;
  auto record = [&](const EpilogueStep& step) {
    steps.push_back(step.call.op->name + std::to_string(step.data_arg) +
                    std::to_string(step.before.size()) + (step.other() == g["y"] ? "y" : ""));
    return true;
  };
  names(g, make<AnchorEpiloguePartitionRule>("conv", is_op("conv"), MatchPredicate{}, record));
  EXPECT_THAT(steps, ElementsAre("subtract10y", "relu01"));
}

TEST(AnchorEpilogueRule, StopsWhereTheValueIsUsedTwiceOrIsTheResult) {
  auto accept = [](const EpilogueStep&) { return true; };
  TinyGraph shared("x; a = conv(x, c1); b = relu(a); d = add(b, a); return d");
  EXPECT_THAT(names(shared, make<AnchorEpiloguePartitionRule>("conv", is_op("conv"),
                                                              MatchPredicate{}, accept)),
              ElementsAre("a"));
  TinyGraph result("x; a = conv(x, c1); b = relu(a); return tuple(a, b)");
  EXPECT_THAT(names(result, make<AnchorEpiloguePartitionRule>("conv", is_op("conv"),
                                                              MatchPredicate{}, accept)),
              ElementsAre("a"));
}

TEST(PatternTable, LabelsItsRows) {
  TinyGraph g(kConvChain);
  auto candidates = run(g, make_pattern_rule("table", {{"t.conv", is_op("conv")},
                                                       {"t.relu", is_op("relu")(wildcard())}}));
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].rule_name, "t.conv");
  EXPECT_EQ(candidates[1].sub_graph.nested()[0].label, "t.relu");
}

TEST(MaxCoalesceRule, JoinsAllThatTouches) {
  TinyGraph g(
      "x; a = conv(x, c1); b = relu(a); d = sort(b); e = exp(d); f = tanh(d); "
      "return add(e, f)");
  EXPECT_THAT(
      names(g, make<MaxCoalescePartitionRule>("max", ops({"conv", "relu", "exp", "tanh", "add"}))),
      ElementsAre("a b", "e f result"));
}

TEST(MaxCoalesceRule, KeepsRegionsConvex) {
  // a and e touch, but the path through the unsupported d leaves and comes back.
  TinyGraph g("x; a = relu(x); d = sort(a); e = add(a, d); return e");
  EXPECT_THAT(names(g, make<MaxCoalescePartitionRule>("max", ops({"relu", "add"}))),
              ElementsAre("a", "e"));
}

TEST(MaxCoalesceRule, PassesWiresAndViewsInBetweenButNotAtTheBoundary) {
  TinyGraph g(
      "x; r0 = reshape(x); a = relu(r0); r = reshape(a); s = split(r); p = s.0; q = s.1; "
      "t = tuple(q, p); k = concat(t); r1 = reshape(k); return r1");
  EXPECT_THAT(names(g, make<MaxCoalescePartitionRule>("max", ops({"relu", "split", "concat"}))),
              ElementsAre("a r s q p t k"));
}

TEST(MaxCoalesceRule, HonoursTheLimits) {
  TinyGraph g("x; a = relu(x); b = exp(a); d = tanh(a); return tuple(b, d)");
  EXPECT_THAT(names(g, make<MaxCoalescePartitionRule>("max", any_op())), ElementsAre("a b d"));
  EXPECT_THAT(names(g, make<MaxCoalescePartitionRule>("max", any_op(), SubGraphConfig{0, 1})),
              ElementsAre("a", "b", "d"));
}

TEST(CombineRule, FusesAsFuseOpsDoes) {
  // Elementwise calls follow the anchor; nothing is fused into an anchor or into an opaque call.
  TinyGraph g(
      "x; z = exp(x); a = conv(z, c1); b = relu(a); d = dense(b, c2); e = sort(d); "
      "return e");
  EXPECT_THAT(names(g, make<CombineByPrimitivesPartitionRule>("f", any_op())),
              UnorderedElementsAre("z", "a", "b", "d", "e", "a b"));
}

TEST(CombineRule, ClosesDiamondsInOneStep) {
  TinyGraph g("x; a = exp(x); b = relu(a); d = tanh(a); e = add(b, d); return e");
  EXPECT_THAT(names(g, make<CombineByPrimitivesPartitionRule>("f", any_op())),
              UnorderedElementsAre("a", "b", "d", "e", "b e", "d e", "b d e", "a b d e"));
}

TEST(CombineRule, FusesInjectiveIntoReductionButNotThrough) {
  TinyGraph g("x; a = transpose(x); b = sum(a); d = exp(b); e = sum(d); return e");
  EXPECT_THAT(names(g, make<CombineByPrimitivesPartitionRule>("f", any_op())),
              UnorderedElementsAre("a", "b", "d", "e", "a b", "b d", "a b d", "d e"));
}

TEST(CombineRule, PassesTuplesProjectionsAndViews) {
  TinyGraph g(
      "x; y; s = split(x); p = s.0; q = s.1; a = add(p, q); r = reshape(a); "
      "t = tuple(r, y); k = concat(t); return k");
  CombineConfig config;
  config.maximal = false;
  EXPECT_THAT(names(g, make<CombineByPrimitivesPartitionRule>("f", ops({"split", "add", "concat"}),
                                                              config)),
              UnorderedElementsAre("s", "a", "t k", "s p q a", "a r t k", "s p q a r t k"));
}

TEST(CombineRule, KeepsLimitsButGivesTheMaximalRegion) {
  std::string text = "x; a0 = relu(x)";
  for (int i = 1; i < 20; ++i)
    text += "; a" + std::to_string(i) + " = exp(a" + std::to_string(i - 1) + ")";
  TinyGraph g(text + "; return a19");
  CombineConfig config;
  config.max_depth = 3;
  auto candidates = run(g, make<CombineByPrimitivesPartitionRule>("f", any_op(), config));
  EXPECT_EQ(candidates.size(), 20u + 19u + 18u + 1u);
  EXPECT_EQ(candidates.back().sub_graph.inside().size(), 20u);
  config.maximal = false;
  config.max_per_exit = 2;
  EXPECT_EQ(run(g, make<CombineByPrimitivesPartitionRule>("f", any_op(), config)).size(),
            20u + 19u);
}

TEST(CombineRule, StrictLimitsHoldForTheMaximalRegionToo) {
  std::string text = "x; a0 = relu(x)";
  for (int i = 1; i < 20; ++i)
    text += "; a" + std::to_string(i) + " = exp(a" + std::to_string(i - 1) + ")";
  TinyGraph g(text + "; return a19");
  CombineConfig config;
  config.max_depth = 0;
  config.max_ops = 3;
  config.strict = true;
  auto candidates = run(g, make<CombineByPrimitivesPartitionRule>("f", any_op(), config));
  EXPECT_EQ(candidates.size(), 20u + 19u + 18u);
  for (const CandidatePartition& candidate : candidates)
    EXPECT_LE(candidate.sub_graph.inside().size(), 3u);
}

TEST(CombineRule, JoinsAnythingWhenAsked) {
  TinyGraph g("x; a = conv(x, c1); b = dense(a, c2); e = sort(b); return e");
  CombineConfig config;
  config.joins = any_joins();
  EXPECT_THAT(names(g, make<CombineByPrimitivesPartitionRule>("f", any_op(), config)),
              UnorderedElementsAre("a", "b", "e", "a b", "b e", "a b e"));
}

TEST(CombineRule, GivesCandidatesInProportionToTheGraph) {
  auto ladder = [](int n) {
    std::string text = "x; y; a0 = add(x, y)";
    for (int i = 1; i < n; ++i) {
      std::string j = std::to_string(i - 1), k = std::to_string(i);
      text += "; b" + k + " = relu(a" + j + "); e" + k + " = tanh(a" + j + "); a" + k +
              " = multiply(b" + k + ", e" + k + ")";
    }
    return text + "; return a" + std::to_string(n - 1);
  };
  TinyGraph small(ladder(10)), large(ladder(40));
  PartitionRulePtr rule = make<CombineByPrimitivesPartitionRule>("f", any_op());
  EXPECT_LE(run(large, rule).size(), 5 * run(small, rule).size());
}

TEST(HorizontalRule, JoinsSiblingsWithAResultEach) {
  TinyGraph g(
      "x; a = conv(x, c1); b = conv(x, c2); r = relu(b); d = conv(x, c3); o = dense(x, c4); "
      "return tuple(a, r, d, o)");
  PartitionRulePtr fused = make<CombineByPrimitivesPartitionRule>("f", any_op());
  // All three, and each with the next; with what follows them and without. The product is another
  // operator.
  EXPECT_THAT(names(g, make<HorizontalPartitionRule>("h", fused)),
              UnorderedElementsAre("a b", "a b r", "b d", "b r d", "a b d", "a b r d"));
  auto both = run(g, make<HorizontalPartitionRule>(
                         "h", ops({"conv"}), HorizontalPartitionRule::Options{.max_siblings = 2}));
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].function(g.graph())->result_type().leaves().size(), 2u);
}

TEST(HorizontalRule, JoinsAllSiblingsOfAKindOrNone) {
  TinyGraph g(
      "x; y; a = conv(x, c1); ra = relu(a); b = dense(x, c2); d = conv(x, c3); e = conv(x, c1); "
      "f = conv(x, c3); re = add(e, y); rf = relu(f); return tuple(ra, b, d, re, rf)");
  // By their weights; without the sum, which reads more than all of them do.
  const auto weights = [](const CallNode& a, const CallNode& b) { return a.args[1] == b.args[1]; };
  const HorizontalPartitionRule::Options options{.accepts = weights, .all_or_none = true};
  PartitionRulePtr fused = make<CombineByPrimitivesPartitionRule>("f", any_op());
  EXPECT_THAT(names(g, make<HorizontalPartitionRule>("h", fused, options)),
              UnorderedElementsAre("a ra e", "d f rf"));
}

TEST(HorizontalRule, LeavesAloneWhatWaitsForASibling) {
  TinyGraph g(
      "x; a = conv(x, c1); b = relu(a); d = conv(b, c2); e = conv(b, c3); return add(d, e)");
  EXPECT_THAT(names(g, make<HorizontalPartitionRule>("h", ops({"conv"}))), ElementsAre("d e"));
  TinyGraph other("x; y; a = conv(x, c1); b = conv(y, c1); return add(a, b)");
  EXPECT_THAT(names(other, make<HorizontalPartitionRule>("h", ops({"conv"}))), ElementsAre());
}

TEST(VerticalRule, JoinsAnAnchorWithTheOneThatFollows) {
  TinyGraph g("x; a = dense(x, c1); b = relu(a); d = dense(b, c2); e = sort(d); return e");
  PartitionRulePtr fused = make<CombineByPrimitivesPartitionRule>("f", any_op());
  auto all = [](const CallNode&, const CallNode&) { return true; };
  auto none = [](const CallNode&, const CallNode&) { return false; };
  EXPECT_THAT(names(g, make<VerticalPartitionRule>("v", fused, all)), ElementsAre("a b d"));
  EXPECT_THAT(names(g, make<VerticalPartitionRule>("v", fused, none)), ElementsAre());
  // What is between is used elsewhere too.
  TinyGraph tapped("x; a = dense(x, c1); d = dense(a, c2); return add(a, d)");
  EXPECT_THAT(names(tapped, make<VerticalPartitionRule>("v", ops({"dense"}), all)), ElementsAre());
}

}  // namespace
}  // namespace collage
