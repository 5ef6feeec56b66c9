// What must hold of candidates, sub-graphs and covers of any graph: 1,000 random ones a run.
#include "partition/random_graph.h"

#include <gmock/gmock.h>

#include <set>

#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "partition/gather.h"
#include "partition/merge.h"
#include "partition/prune.h"
#include "partition/rewrite.h"
#include "partition/rules/anchor_union.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/composite.h"
#include "partition/rules/df_pattern.h"
#include "partition/rules/host.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/union_rule.h"

namespace collage {
namespace {

constexpr uint64_t kGraphs = 1000;

template <typename Rule, typename... Args>
PartitionRulePtr make_rule(Args&&... args) {
  return std::make_shared<Rule>(std::forward<Args>(args)...);
}

struct Subject {
  PartitionSpecPtr spec;
  SubGraphConfig limits;  // what every candidate must keep
};

// Two calls that need not touch: candidates with several exits, which may wait for one another.
class PairsPartitionRule : public PartitionRule {
 public:
  PairsPartitionRule() : PartitionRule("pairs") {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    std::vector<CandidatePartition> single = HostPartitionRule().all_candidates(graph, spec),
                                    result;
    for (size_t i = 0; i + 1 < single.size(); ++i)
      for (size_t j = i + 1; j < single.size() && j < i + 15; ++j) {
        SubGraph both = single[i].sub_graph.disjoint_union(graph, single[j].sub_graph);
        if (both.is_valid(graph, {0, 0, true})) result.push_back({name(), std::move(both), spec});
      }
    return result;
  }
};

// Every kind of rule, alone and composed.
std::vector<Subject> subjects() {
  auto spec = [](std::string name, PartitionRulePtr rule, bool merges = false) {
    auto made = std::make_shared<PartitionSpec>();
    made->name = name;
    made->rule = std::move(rule);
    made->target.kind = name;
    made->compiler = name;
    made->merges = merges;
    return made;
  };
  PartitionRulePtr kinds =
      make_rule<DFPatternPartitionRule>("kinds", is_op_up_to(FusionKind::kAnchor));
  PartitionRulePtr every =
      make_rule<OpPredicatePartitionRule>("every", [](const CallNode&) { return true; });
  CombineConfig fuse;
  fuse.max_call_depth = 5;
  fuse.strict = true;
  CombineConfig any;
  any.joins = any_joins();
  any.max_depth = 3;
  any.maximal = false;
  DFPattern conv = is_op("conv")(wildcard(), is_constant());
  DFPattern diamond = dominator(conv, is_op_up_to(FusionKind::kBroadcast), is_op("add"));
  PartitionRulePtr patterns = make_rule<UnionPartitionRule>(
      "patterns",
      std::vector<PartitionRulePtr>{
          make_rule<CompositePartitionRule>(
              "my.conv",
              make_rule<DFPatternPartitionRule>("my.conv", conv.optional([](DFPattern p) {
                return is_op("add")(p, wildcard());
              }))),
          make_rule<CompositePartitionRule>(
              "my.diamond", make_rule<DFPatternPartitionRule>("my.diamond", diamond)),
          make_rule<CompositePartitionRule>(
              "my.relu", make_rule<DFPatternPartitionRule>("my.relu", is_op("relu")(wildcard())))});
  PartitionRulePtr fused = make_rule<CombineByPrimitivesPartitionRule>("fuse", kinds, fuse);
  return {
      {spec("kinds", kinds), {1, 1, false}},
      {spec("fuse", fused), {5, 1, false}},
      {spec("any", make_rule<CombineByPrimitivesPartitionRule>("any", every, any), true),
       {0, 1, false, 3}},
      {spec("patterns", patterns), {0, 1, false}},
      {spec("patterned", make_rule<CombineByPrimitivesPartitionRule>("patterned", patterns, any),
            true),
       {0, 1, false}},
      {spec("regions", make_rule<MaxCoalescePartitionRule>("regions", every), true), {0, 0, true}},
      {spec("siblings", make_rule<HorizontalPartitionRule>("siblings", fused)), {0, 8, false}},
      {spec("stacked",
            make_rule<VerticalPartitionRule>(
                "stacked", fused, [](const CallNode&, const CallNode&) { return true; })),
       {0, 1, false}},
      {spec("pairs", make_rule<PairsPartitionRule>(), true), {0, 0, true}},
      {spec("host", make_rule<HostPartitionRule>()), {1, 1, false}}};
}

std::vector<Tensor> inputs_of(const Function& function) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < function->params.size(); ++i)
    inputs.push_back(Tensor::from<float>({4}, {1.f + static_cast<float>(i), -2, 3.25f, 0.5f}));
  return inputs;
}

// Bit for bit: kernels compute the same operators in the same way.
void expect_same_results(const Function& a, const Function& b) {
  std::vector<Tensor> inputs = inputs_of(a);
  Result<std::vector<Tensor>> x = interpret(a, inputs), y = interpret(b, inputs);
  ASSERT_TRUE(x.ok() && y.ok()) << x.status().to_string() << y.status().to_string();
  ASSERT_EQ(x->size(), y->size());
  for (size_t k = 0; k < x->size(); ++k)
    for (int64_t i = 0; i < (*x)[k].size(); ++i)
      EXPECT_EQ((*x)[k].data<float>()[i], (*y)[k].data<float>()[i]);
}

Result<Function> partition(const DataflowGraph& graph,
                           const std::vector<CandidatePartition>& kernels) {
  WriteOptions options;
  options.form = KernelForm::kInline;
  return TRY(write_kernels(graph, kernels_to_write(kernels), Module(), options)).module.main();
}

class RandomGraphs : public ::testing::Test {
 protected:
  // Calls f(graph, candidates) for every graph, with the seed and the graph in messages.
  template <typename F>
  void for_each_graph(F&& f) {
    const std::vector<Subject> all = subjects();
    for (uint64_t seed = 0; seed < kGraphs && !HasFailure(); ++seed) {
      Function function = untangle_tuples(RandomFunction(seed).make(3 + seed % 20));
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(function));
      DataflowGraph graph(function);
      rng_.seed(seed);
      f(graph, all);
    }
  }
  static std::vector<CandidatePartition> candidates(const DataflowGraph& graph,
                                                    const std::vector<Subject>& all) {
    std::vector<PartitionSpecPtr> specs;
    for (const Subject& subject : all) specs.push_back(subject.spec);
    return gather_candidates(graph, specs);
  }
  std::mt19937_64 rng_;
};

TEST_F(RandomGraphs, CandidatesAreConvexValidAndDistinct) {
  std::map<std::string, size_t> counts;
  for_each_graph([&](const DataflowGraph& graph, const std::vector<Subject>& all) {
    for (const Subject& subject : all) {
      std::set<IndexSet> seen;
      for (const CandidatePartition& candidate : all_candidates(graph, subject.spec)) {
        std::string why;
        EXPECT_TRUE(candidate.sub_graph.is_convex(graph));
        EXPECT_TRUE(candidate.sub_graph.is_valid(graph, subject.limits, &why))
            << subject.spec->name << " " << candidate.sub_graph.inside().to_string() << ": " << why;
        EXPECT_TRUE(seen.insert(candidate.sub_graph.inside()).second) << subject.spec->name;
        ++counts[subject.spec->name];
      }
    }
  });
  for (const Subject& subject : subjects())
    EXPECT_GT(counts[subject.spec->name], 100u) << subject.spec->name;
}

TEST_F(RandomGraphs, ExtractionThenInliningGivesTheGraphBack) {
  size_t checked = 0;
  for_each_graph([&](const DataflowGraph& graph, const std::vector<Subject>& all) {
    std::vector<CandidatePartition> some = candidates(graph, all);
    std::shuffle(some.begin(), some.end(), rng_);
    if (some.size() > 12) some.erase(some.begin() + 12, some.end());
    for (const CandidatePartition& candidate : some) {
      for (ConstantsInside constants : {ConstantsInside::kAll, ConstantsInside::kRequired}) {
        const KernelToWrite kernel{&candidate};
        WriteOptions options;
        options.constants = constants;
        Result<WrittenKernels> one = write_kernels(graph, {&kernel, 1}, Module(), options);
        ASSERT_TRUE(one.ok()) << one.status().to_string();
        Rewriter with_literals([&](const Expr&, const Expr& rebuilt) -> Result<Expr> {
          const auto* call = as<CallNode>(rebuilt);
          const auto* global = call != nullptr ? as<GlobalVarNode>(call->callee) : nullptr;
          if (global == nullptr) return rebuilt;
          return make_function_call(one->module.functions.at(global->name), call->args);
        });
        Function whole = *with_literals.rewrite(one->module.main());
        EXPECT_TRUE(structural_equal(untangle_tuples(*inline_calls(whole)), graph.function()))
            << candidate.spec->name << " " << candidate.sub_graph.inside().to_string();
        ++checked;
      }
    }
  });
  EXPECT_GT(checked, 5 * kGraphs);
}

TEST_F(RandomGraphs, UnionsAndLabelsKeepTheirLaws) {
  size_t pairs = 0;
  for_each_graph([&](const DataflowGraph& graph, const std::vector<Subject>& all) {
    std::vector<CandidatePartition> some = candidates(graph, all);
    std::shuffle(some.begin(), some.end(), rng_);
    for (size_t i = 0; i + 2 < some.size() && i < 30; i += 3) {
      const SubGraph &a = some[i].sub_graph, &b = some[i + 1].sub_graph, &c = some[i + 2].sub_graph;
      if (a.inside().intersects(b.inside())) continue;
      SubGraph ab = a.disjoint_union(graph, b), ba = b.disjoint_union(graph, a);
      EXPECT_EQ(ab.inside(), a.inside() | b.inside());
      for (auto part : {&SubGraph::entry, &SubGraph::exit, &SubGraph::input, &SubGraph::output})
        EXPECT_EQ((ab.*part)(), (ba.*part)());
      for (auto part : {&SubGraph::entry, &SubGraph::exit, &SubGraph::input, &SubGraph::output})
        EXPECT_EQ((ab.*part)(), (SubGraph(graph, ab.inside(), ab.kind()).*part)());
      EXPECT_EQ(ab.kind(), std::max(a.kind(), b.kind()));
      EXPECT_EQ(ab.nested().size(), a.nested().size() + b.nested().size());
      const auto depth = [&](const SubGraph& of) { return of.depth(graph).calls; };
      EXPECT_LE(std::max(depth(a), depth(b)), depth(ab));
      EXPECT_LE(depth(ab), depth(a) + depth(b));
      EXPECT_TRUE(ab.input().is_subset_of(a.input() | b.input()));
      EXPECT_TRUE(ab.exit().is_subset_of(a.exit() | b.exit()));
      SubGraph labelled = ab.labelled(graph, "both");
      EXPECT_EQ(labelled.inside(), ab.inside());
      EXPECT_EQ(labelled.exit(), ab.exit());
      EXPECT_EQ(labelled.nested().size(), 1u);
      if (!c.inside().intersects(ab.inside())) {
        SubGraph left = ab.disjoint_union(graph, c);
        SubGraph right = a.disjoint_union(graph, b.disjoint_union(graph, c));
        EXPECT_EQ(left.inside(), right.inside());
        EXPECT_EQ(left.input(), right.input());
        EXPECT_EQ(depth(left), depth(right));
      }
      ++pairs;
    }
  });
  EXPECT_GT(pairs, kGraphs);
}

TEST_F(RandomGraphs, SubstitutionMovesEverythingAndBack) {
  for_each_graph([&](const DataflowGraph& graph, const std::vector<Subject>& all) {
    // The same expressions at other numbers: something else comes first.
    const Function& function = graph.function();
    Expr first = *make_call("exp", {function->params.back()});
    DataflowGraph other(make_function(function->params, make_tuple({first, function->body})));
    std::unordered_map<PostDfsIndex, PostDfsIndex> there, back;
    for (const DataflowGraph::Node& node : graph.nodes()) {
      there[node.index] = other.index_of(node.expr);
      back[other.index_of(node.expr)] = node.index;
    }
    auto mapped = [&](const IndexSet& set) {
      IndexSet result;
      set.for_each([&](PostDfsIndex i) { result.insert(there.at(i)); });
      return result;
    };
    std::vector<CandidatePartition> some = candidates(graph, all);
    std::shuffle(some.begin(), some.end(), rng_);
    if (some.size() > 20) some.erase(some.begin() + 20, some.end());
    for (const CandidatePartition& candidate : some) {
      const SubGraph& before = candidate.sub_graph;
      SubGraph after = before.substitute(other, there);
      EXPECT_EQ(after.inside(), mapped(before.inside()));
      EXPECT_EQ(after.entry(), mapped(before.entry()));
      EXPECT_EQ(after.input(), mapped(before.input()));
      EXPECT_EQ(after.depth(other).calls, before.depth(graph).calls);
      EXPECT_EQ(after.nested().size(), before.nested().size());
      SubGraph again = after.substitute(graph, back);
      EXPECT_EQ(again.inside(), before.inside());
      EXPECT_EQ(again.exit(), before.exit());
      EXPECT_TRUE(structural_equal(again.extract(graph), before.extract(graph)));
    }
  });
}

TEST_F(RandomGraphs, AnyLegalCoverComputesTheSame) {
  size_t kernels = 0, refused = 0, merged = 0;
  for_each_graph([&](const DataflowGraph& graph, const std::vector<Subject>& all) {
    std::vector<CandidatePartition> some = candidates(graph, all);
    std::shuffle(some.begin(), some.end(), rng_);
    if (rng_() % 2)  // large ones first, now and then
      std::stable_sort(some.begin(), some.end(), [](const auto& a, const auto& b) {
        return a.sub_graph.inside().size() > b.sub_graph.inside().size();
      });
    std::vector<CandidatePartition> cover;
    IndexSet taken;
    for (CandidatePartition& candidate : some) {
      if (candidate.sub_graph.inside().intersects(taken)) continue;
      cover.push_back(candidate);
      if (!partition(graph, cover).ok()) {  // would wait for another kernel that waits for it
        cover.pop_back();
        ++refused;
        continue;
      }
      taken |= candidate.sub_graph.inside();
    }
    Result<Function> function = partition(graph, cover);
    ASSERT_TRUE(function.ok());
    expect_same_results(graph.function(), *function);
    kernels += cover.size();
    // Merged after the search: the same nodes in fewer kernels.
    std::vector<CandidatePartition> fewer = merge_touching(graph, cover);
    merged += cover.size() - fewer.size();
    IndexSet left;
    for (const CandidatePartition& kernel : fewer) {
      std::string why;
      EXPECT_TRUE(kernel.sub_graph.is_valid(graph, {0, 0, true}, &why)) << why;
      EXPECT_FALSE(left.intersects(kernel.sub_graph.inside()));
      left |= kernel.sub_graph.inside();
    }
    EXPECT_TRUE(taken.is_subset_of(left));
    Result<Function> again = partition(graph, fewer);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    expect_same_results(graph.function(), *again);
  });
  EXPECT_GT(kernels, 3 * kGraphs);
  EXPECT_GT(refused, 10u);  // such covers do occur
  EXPECT_GT(merged, 100u);
}

TEST_F(RandomGraphs, PruningKeepsTheLargestAndCoversAsMuch) {
  size_t before = 0, after = 0;
  for_each_graph([&](const DataflowGraph& graph, const std::vector<Subject>& all) {
    std::vector<PartitionSpecPtr> specs = {all[1].spec, all[4].spec};
    std::vector<CandidatePartition> found = gather_candidates(graph, specs);
    std::vector<CandidatePartition> kept = prune_candidates(graph, found);
    IndexSet held, was;
    for (const CandidatePartition& candidate : kept) held |= candidate.sub_graph.inside();
    for (const CandidatePartition& candidate : found) {
      was |= candidate.sub_graph.inside();
      bool largest = std::none_of(found.begin(), found.end(), [&](const auto& other) {
        return other.spec == candidate.spec &&
               other.sub_graph.inside().size() > candidate.sub_graph.inside().size() &&
               candidate.sub_graph.inside().is_subset_of(other.sub_graph.inside());
      });
      bool there = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
        return other.spec == candidate.spec &&
               other.sub_graph.inside() == candidate.sub_graph.inside();
      });
      EXPECT_TRUE(!largest || there);
    }
    EXPECT_EQ(held, was);
    before += found.size();
    after += kept.size();
  });
  EXPECT_LT(after, before * 9 / 10);
}

}  // namespace
}  // namespace collage
