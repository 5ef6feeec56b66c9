// The plan that leaves all it can to one whole-sub-graph toolchain is among those that are timed,
// whatever its kernels cost when they were measured alone. Costs here are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "backend/reference/kernels/interpreted_kernel.h"
#include "backend/targets/backends.h"
#include "choose/light_cover.h"
#include "ir/op.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/op_predicate.h"
#include "partition/rules/union_rule.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::Not;

bool is_elementwise(const CallNode& call) {
  return call.op != nullptr && call.op->kind == FusionKind::kElementwise;
}

// Takes elementwise operators, one by one and in regions as large as they come.
class RegionBackend : public Backend {
 public:
  RegionBackend() : RegionBackend("regions", true) {}
  RegionBackend(const char* name, bool prefers_maximal_regions)
      : Backend(name, [=] {
          return BackendTraits{.version = "1",
                               .by_default = false,
                               .prefers_maximal_regions = prefers_maximal_regions};
        }) {}
  PartitionRulePtr partition_rule(const Target&) const override {
    const auto alone = std::make_shared<OpPredicatePartitionRule>("regions.one", is_elementwise);
    return std::make_shared<UnionPartitionRule>(
        "regions", std::vector<PartitionRulePtr>{
                       alone, std::make_shared<MaxCoalescePartitionRule>("regions.all", alone)});
  }
  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    return std::vector<Variant>{Variant::plain("region", function)};
  }
  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant&, const Target&,
                                          const CompileOptions&) const override {
    return make_interpreted_kernel(function);
  }
};

// Takes every single operator.
class SingleBackend : public RegionBackend {
 public:
  SingleBackend() : RegionBackend("singles", false) {}
  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<OpPredicatePartitionRule>(
        "singles", [](const CallNode& call) { return call.op != nullptr; });
  }
};

void register_test_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_all();
    register_backend(std::make_unique<RegionBackend>());
    register_backend(std::make_unique<SingleBackend>());
  });
}

struct FoundPlans {
  DataflowGraph graph;
  std::vector<CostedCandidate> candidates;
  CoverSearch search;

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const NamedCover& cover : search.covers) names.push_back(cover.name);
    return names;
  }
  // How many operators each kernel of that cover holds.
  std::vector<size_t> sizes(const std::string& name) const {
    std::vector<size_t> sizes;
    for (const NamedCover& cover : search.covers)
      if (cover.name == name)
        for (const Cover::Kernel& kernel : cover.kernels)
          sizes.push_back(candidates[kernel.candidate].partition.sub_graph.inside().size());
    return sizes;
  }
};

// What is found of the model where regions of several operators are a thousand times as dear as
// single ones.
FoundPlans plans_of(const std::string& model) {
  register_test_backends();
  Result<Module> module = parse_module("#[version = \"0.0.5\"]\n" + model);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  FoundPlans plans{DataflowGraph(module->main()), {}, {}};
  const auto specs = select_targets({"regions", "singles"}, {});
  EXPECT_TRUE(specs.ok()) << specs.status().to_string();
  auto candidates = checked_candidates(plans.graph, *specs);
  EXPECT_TRUE(candidates.ok()) << candidates.status().to_string();
  for (CandidatePartition& found : *candidates) {
    const double seconds = found.sub_graph.inside().size() > 1 ? 1e-2 : 1e-5;
    const double most = found.spec->is_host ? 1 : seconds;
    const Function function = found.sub_graph.extract(plans.graph);
    auto costs = std::make_shared<TargetCosts>();
    costs->target = found.spec->target.to_string();
    costs->variants.push_back({Variant::plain("v", function), Measured{most, most, most, 40}});
    plans.candidates.push_back({std::move(found), function, std::move(costs)});
  }
  const std::unique_ptr<CostDatabase> database = CostDatabase::in_memory();
  CostOptions options;
  options.frozen = true;
  MeasuredCosts costs(*database, options);
  Result<CoverSearch> search = find_covers(plans.graph, plans.candidates, costs);
  EXPECT_TRUE(search.ok()) << search.status().to_string();
  if (search.ok()) plans.search = std::move(search).value();
  return plans;
}

TEST(WholePlans, OfOneToolchainAreTimedWhateverTheyCost) {
  const FoundPlans plans = plans_of(R"(def @main(%x: Tensor[(64, 64), float32]) {
  %0 = tanh(%x);
  %1 = exp(%0);
  sigmoid(%1)
}
)");
  EXPECT_THAT(plans.names(), Contains("regions (whole)"));
  EXPECT_EQ(plans.sizes("regions (whole)"), std::vector<size_t>{3});
  EXPECT_EQ(plans.sizes("cover 1").size(), 3U) << "it is not what costs say";
  // Each cover says which variation it is from, and that was searched for.
  std::map<std::string, std::string> origins;
  for (const NamedCover& cover : plans.search.covers) {
    origins[cover.name] = cover.origin;
    EXPECT_GE(plans.search.counts.of_origin.at(cover.origin), 1U) << cover.name;
  }
  EXPECT_EQ(origins.at("cover 1"), kCheapest);
  EXPECT_EQ(origins.at("regions"), "single backend");
  EXPECT_EQ(origins.at("regions (whole)"), "single backend in regions");
  EXPECT_EQ(origins.at("mostly regions (whole)"), "mostly one backend in regions");
}

// The softmax is another's: with it on the host the whole would be lost from the start.
TEST(WholePlans, AreTimedWithOthersForWhatTheToolchainLacks) {
  const FoundPlans plans = plans_of(R"(def @main(%x: Tensor[(64, 64), float32]) {
  %0 = tanh(%x);
  %1 = exp(%0);
  %2 = sigmoid(%1);
  %3 = tanh(%2);
  %4 = exp(%3);
  %5 = sigmoid(%4);
  %6 = tanh(%5);
  %7 = exp(%6);
  %8 = sigmoid(%7);
  %9 = tanh(%8);
  %10 = exp(%9);
  %11 = sigmoid(%10);
  nn.softmax(%11, axis=-1)
}
)");
  EXPECT_THAT(plans.names(), Contains("mostly regions (whole)"));
  std::vector<size_t> sizes = plans.sizes("mostly regions (whole)");
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<size_t>{1, 12}));
}

// Most of the arithmetic is a product that the toolchain does not take; most bytes are its own.
TEST(WholePlans, OfModelsBoundByMemoryCountBytes) {
  const FoundPlans plans =
      plans_of(R"(def @main(%x: Tensor[(1000, 1000), float32], %a: Tensor[(200, 200), float32]) {
  %0 = tanh(%x);
  %1 = exp(%0);
  %2 = abs(%1);
  %3 = nn.matmul(%a, %a);
  %4 = nn.matmul(%3, %a);
  (%2, %4)
}
)");
  EXPECT_THAT(plans.names(), Not(Contains("regions"))) << "the host would compute the product";
  EXPECT_THAT(plans.names(), Contains("mostly regions (whole)"));
  std::vector<size_t> sizes = plans.sizes("mostly regions (whole)");
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<size_t>{1, 1, 3}));
}

// What is known of a kernel without asking anybody.
void know(CostStore& store, const DataflowGraph& graph, const CandidatePartition& kernel,
          bool is_right) {
  const Function function = inline_calls(kernel.sub_graph.extract(graph)).value();
  TargetCosts costs;
  costs.target = kernel.spec->target.to_string();
  costs.variants.push_back({Variant::plain("region", function), Unknown{}});
  if (is_right) {
    costs.variants[0].tried = true;
  } else {
    costs.variants[0].cost = Invalid{"wrong result"};
  }
  store.put("trial", {canonical_text(function), kernel.spec->target}, costs);
}

// Before it is taken apart into single operators.
TEST(WholePlans, ARegionThatFailsIsHalved) {
  register_test_backends();
  constexpr size_t kCalls = 100;
  std::string text = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) {\n";
  for (size_t i = 0; i < kCalls; ++i)
    text += fmt::format("  %{} = tanh({});\n", i, i == 0 ? "%x" : fmt::format("%{}", i - 1));
  const Result<Module> module = parse_module(text + "  abs(%99)\n}\n");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  Candidates candidates;
  candidates.graph = std::make_shared<DataflowGraph>(module->main());
  candidates.specs = select_targets({"regions"}, {}).value();
  candidates.found = checked_candidates(*candidates.graph, candidates.specs).value();
  const std::unique_ptr<CostDatabase> database = CostDatabase::in_memory();
  MeasuredCosts costs(*database, {});
  const auto whole = std::max_element(
      candidates.found.begin(), candidates.found.end(), [](const auto& a, const auto& b) {
        return a.sub_graph.inside().size() < b.sub_graph.inside().size();
      });
  ASSERT_EQ(whole->sub_graph.inside().size(), kCalls + 1);
  know(costs.store(), *candidates.graph, *whole, false);
  std::vector<size_t> nodes = whole->sub_graph.inside().elements();
  for (const size_t begin : {size_t{0}, size_t{51}}) {
    IndexSet half;
    for (size_t i = begin; i < std::min(begin + 51, nodes.size()); ++i) half.insert(nodes[i]);
    CandidatePartition kernel = *whole;
    kernel.sub_graph = SubGraph::of(*candidates.graph, half);
    know(costs.store(), *candidates.graph, kernel, true);
  }
  const CompileOptions compile;
  const KernelCompiler compiler = [](const Function& function, const CandidatePartition&,
                                     const Variant&) -> Result<std::shared_ptr<Kernel>> {
    return std::shared_ptr<Kernel>(TRY(make_interpreted_kernel(function)));
  };
  LightSearch light({candidates, costs, {}, compile, compiler}, nullptr);
  const Result<CoverSearch> found = light.find();
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  std::vector<size_t> sizes;
  for (const Cover::Kernel& kernel : found->covers[0].kernels)
    sizes.push_back(found->candidates[kernel.candidate].partition.sub_graph.inside().size());
  EXPECT_EQ(sizes, (std::vector<size_t>{51, 50}));
}

}  // namespace
}  // namespace collage
