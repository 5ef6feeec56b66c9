#include "partition/gather.h"

#include <gmock/gmock.h>

#include "ops/placement.h"
#include "partition/rule_fixture.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/host.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Counts how often it is asked.
class CountingRule : public PartitionRule {
 public:
  explicit CountingRule(PartitionRulePtr rule)
      : PartitionRule("counting"), rule_(std::move(rule)) {}
  std::vector<CandidatePartition> all_candidates(
      const DataflowGraph& graph, const std::shared_ptr<const PartitionSpec>& spec) const override {
    ++asked;
    return rule_->all_candidates(graph, spec);
  }
  mutable int asked = 0;

 private:
  PartitionRulePtr rule_;
};

TEST(Gather, TargetsThatShareARuleShareItsCandidates) {
  TinyGraph g(kConvChain);
  auto rule = std::make_shared<CountingRule>(ops({"conv", "relu"}));
  std::vector<PartitionSpecPtr> specs = {spec_of("one", rule), spec_of("two", rule)};
  std::vector<CandidatePartition> found = gather_candidates(g.graph(), specs);
  EXPECT_EQ(rule->asked, 1);
  std::vector<std::string> labels;
  for (const CandidatePartition& candidate : found)
    labels.push_back(candidate.spec->name + ":" + g.names(candidate.sub_graph.inside()));
  EXPECT_THAT(labels, ElementsAre("one:a", "one:d", "two:a", "two:d"));
}

TEST(Gather, RespectsPrimitiveFunctions) {
  register_tiny_ops();
  TensorType type{{4}, DType::kFloat32};
  auto wrapped = [&](const Attrs& attrs) {
    Expr p = make_var("p", type), x = make_var("x", type);
    Function user = make_function({p}, *make_call("relu", {*make_call("exp", {p})}), attrs);
    Expr call = *make_function_call(user, {*make_call("tanh", {x})});
    return make_function({x}, *make_call("relu", {call}));
  };
  // No rule reaches into it or over it; where asked for, it is a kernel of its own.
  CombineConfig any;
  any.joins = any_joins();
  std::vector<PartitionSpecPtr> specs = {
      spec_of("one", make<CombineByPrimitivesPartitionRule>("any", make<HostPartitionRule>(), any)),
      spec_of("two", ops({"relu"}))};
  DataflowGraph graph(wrapped({{"Primitive", int64_t{1}}}));
  GatherOptions options;
  for (const CandidatePartition& candidate : gather_candidates(graph, specs, options))
    EXPECT_EQ(candidate.sub_graph.inside().size(), 1u);
  auto primitives = [&](const DataflowGraph& of) {
    options.primitives = true;
    std::string names;
    for (const CandidatePartition& candidate : gather_candidates(of, specs, options))
      if (candidate.rule_name == "primitive") names += candidate.spec->name + " ";
    return names;
  };
  EXPECT_EQ(primitives(graph), "one two ");
  DataflowGraph pinned(wrapped({{"Primitive", int64_t{1}}, {"Compiler", "two"}}));
  EXPECT_EQ(primitives(pinned), "two ");
}

TEST(Gather, IncompatibleTargetsAreApart) {
  TinyGraph g(kConvChain);
  std::vector<PartitionSpecPtr> specs;
  for (const char* name : {"a", "b", "c", "d"}) specs.push_back(spec_of(name, any_op()));
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  auto sets = [&](const Pairs& pairs) { return compatible_targets(specs, pairs); };
  EXPECT_THAT(sets({}), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(sets({{"a", "c"}}), UnorderedElementsAre(ElementsAre(0, 1, 3), ElementsAre(1, 2, 3)));
  EXPECT_THAT(sets({{"a", "b"}, {"c", "b"}}),
              UnorderedElementsAre(ElementsAre(0, 2, 3), ElementsAre(1, 3)));
}

TEST(Gather, WhatIsPlacedIsForTargetsThere) {
  register_tiny_ops();
  register_placement_ops();
  const Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  const auto placed = [&](const std::string& device, bool twice = false) {
    const auto put = [&](const Expr& at, const std::string& where) {
      return *make_call("on_device", {at}, {{"device", where}});
    };
    const Expr relu = *make_call("relu", {*make_call("relu", {x})});
    const Expr there = put(relu, device);
    return make_function({x}, twice ? *make_call("add", {there, put(relu, "gpu:1")}) : there);
  };
  const auto on = [](const std::string& name, const VirtualDevice& device) {
    PartitionSpec spec = *spec_of(name, ops({"relu"}));
    spec.target.device = device;
    return std::make_shared<const PartitionSpec>(spec);
  };
  std::vector<PartitionSpecPtr> specs = {on("one", {}), on("two", {"gpu", 0, ""}),
                                         on("three", {"gpu", 1, ""})};
  const auto takers = [&](const Function& function) {
    const DataflowGraph graph(function);
    std::vector<std::string> names(2);
    for (const CandidatePartition& candidate : gather_candidates(graph, specs))
      names[candidate.sub_graph.inside().contains(1) ? 0 : 1] += candidate.spec->name + " ";
    return names;
  };
  // It says nothing of what the placed one reads.
  EXPECT_THAT(takers(placed("gpu")), ElementsAre("one two three ", "two three "));
  EXPECT_THAT(takers(placed("gpu:1")), ElementsAre("one two three ", "three "));
  EXPECT_THAT(takers(placed("/scratch")), ElementsAre("one two three ", "one two three "));
  // A target's name is that of all its targets; with options, of those that have them.
  PartitionSpec wide = *on("three", {"gpu", 1, ""});
  wide.name = "wide";
  wide.target.options = {{"lanes", "8"}, {"wide", "on"}};
  specs.push_back(std::make_shared<const PartitionSpec>(wide));
  EXPECT_THAT(takers(placed("gpu@three")), ElementsAre("one two three wide ", "three wide "));
  EXPECT_THAT(takers(placed("@three -wide=on")), ElementsAre("one two three wide ", "wide "));
  EXPECT_THAT(takers(placed("@three -wide=off")), ElementsAre("one two three wide ", ""));
  specs.pop_back();
  const auto checked = [&](const Function& function) {
    return check_places(DataflowGraph(function), specs).to_string();
  };
  EXPECT_EQ(checked(placed("gpu:1")), "ok");
  EXPECT_EQ(checked(placed("/scratch")), "ok");
  EXPECT_THAT(check_no_scopes(DataflowGraph(placed("/scratch"))).to_string(),
              ::testing::HasSubstr("relu is to be in the memory scope /scratch, which needs"));
  EXPECT_EQ(check_no_scopes(DataflowGraph(placed("gpu:1/global"))).to_string(), "ok");
  EXPECT_THAT(checked(placed("npu")),
              ::testing::HasSubstr("relu is to be on npu, where none of the targets is: one, two"));
  EXPECT_THAT(checked(placed("gpu:0", true)),
              ::testing::HasSubstr("relu would have to be on two devices: gpu:0 and gpu:1"));
  // What reads a result that is placed is there, through tuples, but not what copies it elsewhere.
  const auto read = [&](const char* op, const Attrs& attrs, bool copied = false) {
    Expr value = *make_call(op, {*make_call("relu", {x})}, attrs);
    if (copied) value = *make_call("device_copy", {value}, {{"from", "gpu:1"}, {"to", "gpu:0"}});
    const Expr pair = make_tuple({value, x});
    return make_function({x}, *make_call("relu", {*make_tuple_get_item(pair, 0)}));
  };
  const auto readers = [&](const Function& function) {
    const DataflowGraph graph(function);
    std::string names;
    for (const CandidatePartition& candidate : gather_candidates(graph, specs))
      if (candidate.sub_graph.inside().contains(graph.index_of(function->body)))
        names += candidate.spec->name + " ";
    return names;
  };
  const Attrs used = {{"device", "gpu:1"}, {"constrain_body", false}, {"constrain_result", true}};
  EXPECT_EQ(readers(read("on_device", used)), "three ");
  EXPECT_EQ(readers(read("on_device", used, true)), "two ");
  EXPECT_EQ(readers(read("device_copy", {{"from", "?"}, {"to", "gpu:0"}})), "two ");
  EXPECT_EQ(readers(read("device_copy", {{"from", "?"}, {"to", "/scratch"}})), "one two three ");
  EXPECT_THAT(
      check_no_scopes(DataflowGraph(read("device_copy", {{"from", "?"}, {"to", "gpu:0/scratch"}})))
          .to_string(),
      ::testing::HasSubstr("is to be read in the memory scope scratch"));
}

}  // namespace
}  // namespace collage
