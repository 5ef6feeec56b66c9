// Which backends are targets.
#include "backend/targets/targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "choose/candidates.h"
#include "partition/rules/union_rule.h"

namespace collage {
namespace {

// Takes nothing, and its touching kernels would merge.
class MergingBackend : public Backend {
 public:
  MergingBackend()
      : MergingBackend("merging", [] {
          return BackendTraits{
              .version = "1", .by_default = false, .prefers_maximal_regions = true};
        }) {}
  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<UnionPartitionRule>("merging", std::vector<PartitionRulePtr>{});
  }
  Result<std::vector<Variant>> variants(const Function&, const Target&,
                                        const CompileOptions&) const override {
    return std::vector<Variant>();
  }
  Result<std::unique_ptr<Kernel>> compile(const Function&, const Variant&, const Target&,
                                          const CompileOptions&) const override {
    return unsupported("merging");
  }

 protected:
  MergingBackend(const char* name, BackendTraits (*traits)()) : Backend(name, traits) {}
};

// On a device with a memory scope, and on another.
class BackendOfDevices : public MergingBackend {
 public:
  BackendOfDevices()
      : MergingBackend("devices", [] {
          return BackendTraits{.version = "1",
                               .priority = 1,
                               .prefers_maximal_regions = true,
                               .devices = {{"gpu", 0, ""}, {"gpu", 1, ""}, {"gpu", 1, "shared"}},
                               .options = {{"a"}}};
        }) {}
};

// Does not run beside some others.
class BackendOfConflicts : public MergingBackend {
 public:
  BackendOfConflicts()
      : MergingBackend("conflicting", [] {
          return BackendTraits{.version = "1",
                               .by_default = false,
                               .symbols = {"rival_init"},
                               .conflicts = {"merging", "vulkan"}};
        }) {}
};
class BackendWithRuntime : public MergingBackend {
 public:
  BackendWithRuntime()
      : MergingBackend("driver", [] {
          return BackendTraits{.version = "1", .by_default = false, .runtimes = {"vulkan"}};
        }) {}
};
class BackendWithSymbol : public MergingBackend {
 public:
  BackendWithSymbol()
      : MergingBackend("twin", [] {
          return BackendTraits{.version = "1", .by_default = false, .symbols = {"rival_init"}};
        }) {}
};

void register_merging_backends() {
  register_all();
  if (find_backend("merging") != nullptr) return;
  register_backend(std::make_unique<MergingBackend>());
  register_backend(std::make_unique<BackendOfDevices>());
  register_backend(std::make_unique<BackendOfConflicts>());
}

TEST(Targets, AreApartWhereOneDoesNotRunBesideTheOther) {
  const MergingBackend merging;
  const BackendOfConflicts conflicting;
  const BackendWithRuntime driver;
  const BackendWithSymbol twin;
  for (const auto& [other, reason] : std::initializer_list<std::pair<const Backend*, std::string>>{
           {&merging, "conflicting does not run beside merging"},
           {&driver, "conflicting does not run beside driver's vulkan"}}) {
    EXPECT_EQ(why_apart(conflicting, *other), reason);
    EXPECT_EQ(why_apart(*other, conflicting), reason);
  }
  EXPECT_EQ(why_apart(twin, conflicting), "twin and conflicting both define rival_init");
  EXPECT_EQ(why_apart(conflicting, conflicting), "") << "a symbol of its own";
  EXPECT_EQ(why_apart(twin, merging), "");
  EXPECT_EQ(why_apart(driver, twin), "");
}

TEST(Targets, MeetInNoSetWhereTheirBackendsAreApart) {
  register_merging_backends();
  ProgramOptions options;
  options.targets = {"native", "merging", "conflicting"};
  const Result<TargetChoice> chosen = choose_targets(options);
  ASSERT_TRUE(chosen.ok()) << chosen.status().to_string();
  ASSERT_EQ(chosen->compatible.size(), 2u);
  const Target native{"native", {}, {}}, merging{"merging", {}, {}}, other{"conflicting", {}, {}};
  for (const Target& one : {merging, other}) {
    const std::vector<size_t>* set = chosen->set_with({native, one});
    ASSERT_TRUE(set != nullptr);
    EXPECT_TRUE(chosen->is_in(*set, {"reference", {}, {}}));
    EXPECT_FALSE(chosen->is_in(*set, one == merging ? other : merging));
  }
  EXPECT_TRUE(chosen->set_with({merging, other}) == nullptr);
}

TEST(Targets, MergeAsConfiguredElseAsTheirRuleOrBackendDoes) {
  register_merging_backends();
  auto merges = [](const std::string& keys) {
    auto config = parse_config(R"({"targets": [{"name": "merging")" + keys + "}]}", "F");
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    auto specs = configured_targets(*config, {});
    EXPECT_TRUE(specs.ok()) << specs.status().to_string();
    return specs->at(0)->merges;
  };
  const std::string alone = R"json(, "rule": "is_op('nn.relu')")json";
  const std::string any = R"json(, "rule": "combine(is_op('nn.relu'), joins: any)")json";
  EXPECT_TRUE(merges(""));
  EXPECT_FALSE(merges(R"(, "merge": false)"));
  EXPECT_FALSE(merges(alone));
  EXPECT_TRUE(merges(alone + R"(, "merge": true)"));
  EXPECT_TRUE(merges(any));
  EXPECT_FALSE(merges(any + R"(, "merge": false)"));
}

TEST(Targets, HaveTheRuleThatTheirTextGives) {
  register_merging_backends();
  const auto select = [](const std::vector<std::string>& targets) {
    return select_targets(targets, {});
  };
  const auto specs = select({"merging -rules=composite('mine', is_op('nn.relu')(*))", "native"});
  ASSERT_TRUE(specs.ok()) << specs.status().to_string();
  const auto of = [&](const std::string& target) {
    return *std::find_if(specs->begin(), specs->end(), [&](const PartitionSpecPtr& spec) {
      return spec->target.to_string() == target;
    });
  };
  // Costs are kept by the target, which is the same with any rule.
  EXPECT_EQ(of("merging")->rule_text, "composite('mine', is_op('nn.relu')(*))");
  EXPECT_EQ(of("merging")->rule->name(), "mine");
  EXPECT_FALSE(of("merging")->merges);
  EXPECT_EQ(of("native")->rule_text, "");
  EXPECT_TRUE(select({"merging -rules=union(is_op('exp'), own())"})->at(0)->merges);
  EXPECT_EQ(select({"native", "native -rules=own()"}).status().to_string(),
            "target 'native' has two rules");
  EXPECT_EQ(select({"native -rules=union("}).status().to_string(),
            "target 'native': column 7: expected a pattern, found the end of the text");
}

TEST(Targets, OfAConfigurationMayAddToTheirBackendsRule) {
  register_merging_backends();
  const auto config = parse_config(
      R"json({"targets": [
        {"name": "a", "compiler": "native", "rule": "composite('mine', is_op('exp')(is_op('abs')))"},
        {"name": "b", "compiler": "native",
         "rule": "union(composite('mine', is_op('exp')(is_op('abs'))), own())"},
        {"name": "c", "compiler": "native", "rule": "composite('mine', is_op('exp')(is_op('abs')))"}
      ]})json",
      "F");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto specs = configured_targets(*config, {});
  ASSERT_TRUE(specs.ok()) << specs.status().to_string();
  Expr x = make_var("x", TensorType{{4, 4}, DType::kFloat32});
  const DataflowGraph graph(make_function({x}, *make_call("exp", {*make_call("abs", {x})})));
  const auto count = [&](size_t spec) { return all_candidates(graph, specs->at(spec)).size(); };
  EXPECT_EQ(count(0), 1u);
  EXPECT_GT(count(1), 1u);
  EXPECT_EQ(specs->at(0)->rule, specs->at(2)->rule) << "candidates are found once";
  EXPECT_NE(specs->at(0)->rule, specs->at(1)->rule);
}

TEST(Targets, OfAConfigurationHaveItsOptionsAndDevices) {
  register_merging_backends();
  const auto targets = [](const std::string& device) {
    const auto config = parse_config(
        R"({"targets": [{"name": "a", "compiler": "native", "options": {"symbolic": "only"}},
                        {"name": "b", "compiler": "devices", "device": ")" +
            device + "\"}]}",
        "F");
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return configured_targets(*config, {});
  };
  const auto specs = targets("gpu");
  ASSERT_TRUE(specs.ok()) << specs.status().to_string();
  EXPECT_EQ(specs->at(0)->target.to_string(), "native -symbolic=only");
  EXPECT_EQ(specs->at(1)->target.to_string(), "devices -device=gpu");
  const auto unknown = targets("npu");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().exit_code(), 5);
  EXPECT_EQ(unknown.status().to_string(),
            "F: /targets/1/device: devices has no device npu:0 here: it has gpu:0, gpu:1, "
            "gpu:1/shared");
}

/// Whether a call of one input may be the target's, as the annotated function states.
bool allows(const TargetConstraints& constraints, const Target& target, const Expr& call) {
  const Function function = make_function({as<CallNode>(call)->args[0]}, call);
  const DataflowGraph graph(constraints.annotated(Module(function)).main());
  EXPECT_EQ(graph.stated_targets().status().to_string(), "ok");
  return graph.stated_targets().allow(target, IndexSet{graph.size() - 1});
}

TEST(Targets, AreOnTheirBackendsDevices) {
  register_merging_backends();
  const auto text = [](const std::string& target) {
    const auto specs = select_targets({target}, {});
    return specs ? specs->at(0)->target.to_string() : specs.status().to_string();
  };
  EXPECT_EQ(text("devices"), "devices -device=gpu");
  EXPECT_EQ(text("devices -device=gpu:1"), "devices -device=gpu:1");
  EXPECT_EQ(text("native -device=gpu"),
            "target 'native -device=gpu': native has no device gpu:0 here: it has cpu:0");
}

TEST(Targets, AreThoseOnDeclaredDevices) {
  register_merging_backends();
  const auto text = [](const std::string& devices, const std::vector<std::string>& targets = {}) {
    const auto declared = parse_devices_flag(devices);
    if (!declared) return declared.status().to_string();
    const auto specs = select_targets(targets, {}, *declared);
    if (!specs.ok()) return specs.status().to_string();
    std::string all;
    for (const PartitionSpecPtr& spec : *specs) all += spec->target.to_string() + "; ";
    return all;
  };
  EXPECT_EQ(text("gpu:0, gpu:1"), "devices -device=gpu; devices -device=gpu:1; reference; ");
  EXPECT_EQ(text("cpu:0,gpu:1", {"native"}), "native; reference; ");
  EXPECT_EQ(text("gpu:1", {"native"}),
            "target 'native' is on cpu:0, which --devices does not name");
  EXPECT_EQ(text("big=gpu:1"), "devices -device=gpu:1; reference; ");
  EXPECT_EQ(text("gpu:0, big=gpu:1", {"devices -device=big -a=b"}),
            "devices -device=gpu:1 -a=b; reference; ");
  EXPECT_EQ(text("big=gpu:1", {"devices -device=small"}),
            "target 'devices -device=small': devices has no device small:0 here: it has gpu:0, "
            "gpu:1, gpu:1/shared");
  EXPECT_EQ(text("npu"), "no backend offers the device npu:0 here");
  EXPECT_EQ(text("gpu,gpu"), "--devices gpu,gpu: device 'gpu:0' is declared twice");
}

TEST(Targets, ArePinnedToAndKeptOffADevice) {
  register_merging_backends();
  const auto specs = select_targets({"native", "devices", "devices -device=gpu:1"}, {});
  ASSERT_TRUE(specs.ok()) << specs.status().to_string();
  const auto constraints = TargetConstraints::parse({"gpu:1"}, {"a=b=gpu:0"});
  ASSERT_TRUE(constraints.ok()) << constraints.status().to_string();
  std::string left;
  for (const PartitionSpecPtr& spec : *specs)
    if (!constraints->excludes(spec->target)) left += spec->target.to_string() + "; ";
  EXPECT_EQ(left, "devices -device=gpu; native; reference; ");
  EXPECT_EQ(constraints->pins[0].target.text(), "gpu:0");
  // A device may be called as its backend is.
  const auto same = TargetConstraints::parse({}, {"a=devices -device=devices:1"});
  EXPECT_EQ(same->pins[0].target.text(), "devices -device=devices:1");
  EXPECT_TRUE(constraints->check_pins(*specs).ok());
  EXPECT_TRUE(constraints->pins[0].target.means(Target{"devices", {}, {"gpu", 0, ""}}));
  EXPECT_FALSE(constraints->pins[0].target.means(Target{"native", {}, {}}));
  const auto absent = TargetConstraints::parse({}, {"a=npu:3"});
  EXPECT_EQ(absent->check_pins(*specs).message(),
            "--pin a=npu:3: npu:3 is not among the targets in use: devices -device=gpu, devices "
            "-device=gpu:1, native, reference");
}

TEST(Targets, AreNamedByAsMuchOfTheirTextAsIsGiven) {
  register_merging_backends();
  const auto specs = select_targets(
      {"native", "native -symbolic=only", "devices -device=gpu:1 -memory_scope=shared"}, {});
  ASSERT_TRUE(specs.ok()) << specs.status().to_string();
  std::vector<std::string> texts;
  for (const PartitionSpecPtr& spec : *specs) texts.push_back(spec->target.to_string());
  const auto left = [&](const std::string& exclusion) {
    const auto constraints = TargetConstraints::parse({exclusion}, {});
    EXPECT_TRUE(constraints.ok()) << constraints.status().to_string();
    std::string all;
    for (const PartitionSpecPtr& spec : *specs)
      if (!constraints->excludes(spec->target)) all += spec->target.to_string() + "; ";
    return all;
  };
  const std::string devices = "devices -device=gpu:1 -memory_scope=shared; ";
  EXPECT_EQ(left("native"), devices + "reference; ");
  EXPECT_EQ(left("native -symbolic=only"), devices + "native; reference; ");
  EXPECT_EQ(left("native -symbolic=off"), devices + "native; native -symbolic=only; reference; ");
  EXPECT_EQ(left("devices -device=gpu:1"), "native; native -symbolic=only; reference; ");
  EXPECT_EQ(left("devices -device=gpu"), devices + "native; native -symbolic=only; reference; ");
  EXPECT_EQ(left("devices -device=gpu:1:nn.relu"),
            devices + "native; native -symbolic=only; reference; ");

  const Expr call =
      make_call("nn.relu", {make_var("x", TensorType{{1}, DType::kFloat32})}, {}, "b=c").value();
  const auto pinned = [&](const std::string& pin) {
    const auto constraints = TargetConstraints::parse({}, {pin});
    EXPECT_TRUE(constraints.ok()) << constraints.status().to_string();
    EXPECT_TRUE(constraints->check_pins(*specs).ok()) << pin;
    std::string all;
    for (const PartitionSpecPtr& spec : *specs)
      if (allows(*constraints, spec->target, call)) all += spec->target.to_string() + "; ";
    return all;
  };
  EXPECT_EQ(pinned("b=c=native"), "native; native -symbolic=only; ");
  EXPECT_EQ(pinned("b=.*=native -symbolic=only"), "native -symbolic=only; ");
  EXPECT_EQ(pinned(".*=devices -memory_scope=shared"), devices);
  const auto absent = TargetConstraints::parse({}, {".*=native -symbolic=off"});
  ASSERT_TRUE(absent.ok());
  EXPECT_EQ(
      absent->check_pins(*specs).message(),
      "--pin .*=native -symbolic=off: native -symbolic=off is not among the targets in use: " +
          texts[0] + ", " + texts[1] + ", " + texts[2] + ", " + texts[3]);
}

TEST(Targets, PinsAreMatchedInLinearTimeAndSpace) {
  register_all();
  const auto malformed = TargetConstraints::parse({}, {"conv(=reference"});
  EXPECT_EQ(malformed.status().to_string(),
            "--pin conv(=reference: 'conv(' is no regular expression: missing ): conv(");
  const auto constraints = TargetConstraints::parse({}, {"^(.|x)*y=reference"});
  ASSERT_TRUE(constraints.ok());
  const std::string name(300'000, 'x');
  const Expr x = make_var("x", TensorType{{1}, DType::kFloat32});
  const auto allowed = [&](const std::string& origin) {
    const Expr call = make_call("nn.relu", {x}, {}, origin).value();
    return allows(*constraints, {"native", {}, {}}, call);
  };
  EXPECT_TRUE(allowed(name));
  EXPECT_FALSE(allowed(name + "y"));
}

}  // namespace
}  // namespace collage
