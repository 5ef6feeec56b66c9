#include "partition/stated_targets.h"

#include <gmock/gmock.h>

#include "ir/text_printer.h"
#include "partition/rewrite.h"
#include "partition/rule_fixture.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

/// Two calls, "encoder.0" and "decoder.0", in a function of these attributes.
Function two_calls(const Attrs& attrs) {
  register_tiny_ops();
  const Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  const Expr exp = *make_call("exp", {x}, {}, "encoder.0");
  return make_function({x}, *make_call("relu", {exp}, {}, "decoder.0"), attrs);
}

/// What two targets may run: exp (1), relu (2), and both in one kernel.
std::string allowed(const Attrs& attrs) {
  const DataflowGraph graph(two_calls(attrs));
  EXPECT_EQ(graph.stated_targets().status().to_string(), "ok");
  std::string text;
  for (const Target& target :
       {Target{"one", {}, {}}, Target{"one", {{"a", "b"}}, {"gpu", 1, ""}}}) {
    text += target.options.empty() ? "cpu:" : ", gpu:";
    for (const IndexSet& nodes : {IndexSet{1}, IndexSet{2}, IndexSet{1, 2}})
      if (graph.stated_targets().allow(target, nodes)) text += " " + nodes.to_string();
  }
  return text;
}

TEST(StatedTargets, KeepKernelsWithSomeCallsFromATarget) {
  EXPECT_EQ(allowed({}), "cpu: {1} {2} {1,2}, gpu: {1} {2} {1,2}");
  EXPECT_EQ(allowed({{"exclude", "one for exp"}}), "cpu: {2}, gpu: {2}");
  EXPECT_EQ(allowed({{"exclude", "one -a=b"}}), "cpu: {1} {2} {1,2}, gpu:");
  EXPECT_EQ(allowed({{"exclude", "gpu:1 for relu\none for exp"}}), "cpu: {2}, gpu:");
  EXPECT_EQ(allowed({{"pin", "gpu:1 for ^enc"}}), "cpu: {2}, gpu: {1} {2} {1,2}");
  EXPECT_EQ(allowed({{"pin", "two"}}), "cpu:, gpu:");
  EXPECT_EQ(allowed({{"pin", "two for encoder\ntwo for no such name"}}), "cpu: {2}, gpu: {2}");
}

TEST(StatedTargets, AreReadAsTheyAreWritten) {
  Attrs attrs;
  const std::string regex = "name for\na\\.b";
  state_targets(kPin, *TargetsNamed::parse("two -a=b"), regex, attrs);
  state_targets(kPin, *TargetsNamed::parse("gpu"), "", attrs);
  state_targets(kExclude, *TargetsNamed::parse("big", *DeclaredDevices::parse("big=gpu:1")), "exp",
                attrs);
  EXPECT_EQ(attrs.string("pin"), "two -a=b for name for\\na\\.b\ngpu");
  EXPECT_EQ(attrs.string("exclude"), "gpu:1 for exp");
  EXPECT_EQ(DataflowGraph(two_calls(attrs)).stated_targets().status().to_string(), "ok");
  EXPECT_TRUE(without_stated_targets(attrs).empty());
  EXPECT_EQ(canonical_text(two_calls(attrs)), canonical_text(two_calls({})));
}

TEST(StatedTargets, ThatCannotBeReadAreErrors) {
  const auto said = [](const Attrs& attrs) {
    const DataflowGraph graph(two_calls(attrs));
    return check_places(graph, {}).to_string();
  };
  EXPECT_EQ(said({{"exclude", "one for exp"}}), "ok");
  EXPECT_THAT(said({{"pin", "one for ("}}), HasSubstr("attribute pin, 'one for (': '(' is no"));
  EXPECT_THAT(said({{"exclude", "one two"}}), HasSubstr("attribute exclude, 'one two': target"));
}

TEST(StatedTargets, LeaveTheHostWhatNoTargetTakes) {
  const auto takers = [](const Attrs& attrs) {
    PartitionSpec host = *spec_of("host", any_op());
    host.is_host = true;
    const std::vector<PartitionSpecPtr> specs = {spec_of("one", any_op()),
                                                 std::make_shared<const PartitionSpec>(host)};
    const DataflowGraph graph(two_calls(attrs));
    std::string text;
    for (const CandidatePartition& candidate : gather_candidates(graph, specs))
      text += candidate.spec->name + candidate.sub_graph.inside().to_string() + " ";
    return text;
  };
  EXPECT_EQ(takers({{"exclude", "host"}}), "one{1} one{2} ");
  EXPECT_EQ(takers({{"exclude", "host\none for exp"}}), "one{2} host{1} ");
}

// The partition keeps to what was stated, and to what else its function states.
TEST(StatedTargets, AreStatedNoLongerInAPartition) {
  const Function function = two_calls({{"exclude", "one for exp"}, {"param_devices", "cpu:0"}});
  const DataflowGraph graph(function);
  const auto kernels = gather_candidates(graph, std::vector{spec_of("one", any_op())});
  const Module written =
      write_kernels(graph, kernels_to_write(kernels), Module(function)).value().module;
  EXPECT_FALSE(written.main()->attrs.has("exclude"));
  EXPECT_TRUE(written.main()->attrs.has("param_devices"));
}

}  // namespace
}  // namespace collage
