#include "choose/layerwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "backend/backend.h"
#include "compiler/fault_backend.h"
#include "ir/text_parser.h"
#include "lower/lowering.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

constexpr const char* kChain = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3, 5), float32]) -> Tensor[(2, 15), float32] {
  %0 = tanh(%x);
  %1 = reshape(%0, newshape=[2, 15]);
  %2 = exp(%1);
  sigmoid(%2)
}
)";

// Every operator a kernel of its own on the given target, as the variant "bad" where it has one.
Result<LayerwiseResult> check(const std::vector<std::string>& targets) {
  testing::register_all_and_faulty();
  Module module = TRY(parse_module(kChain));
  DataflowGraph graph(module.main());
  std::deque<CandidatePartition> partitions;
  SearchProblem problem;
  problem.graph = &graph;
  Cover cover;
  for (const DataflowGraph::Node& node : graph.nodes()) {
    if (node_role(node.expr) != NodeRole::kKernel) continue;
    SubGraph alone = SubGraph::of(graph, IndexSet({node.index}));
    const Target target = TRY(Target::parse(targets.at(partitions.size())));
    const Variant variant = Variant::plain("bad", alone.extract(graph));
    partitions.push_back({"", std::move(alone),
                          std::make_shared<PartitionSpec>(PartitionSpec{"", nullptr, target})});
    cover.kernels.push_back({problem.candidates.size(), 0});
    problem.candidates.push_back({&partitions.back(), {{variant}}});
  }
  LoweringOptions options;
  options.choose_conversion = [](const TensorType&, const Encoding&, const Encoding&) {
    return Result<ConversionChoice>(ConversionChoice{"reference", 1e-6});
  };
  options.compile_kernel = [&](const Function& function, const CandidatePartition& partition,
                               const Variant& chosen) -> Result<std::shared_ptr<Kernel>> {
    const Target& target = partition.spec->target;
    Variant variant = chosen;
    if (target.kind == "reference") variant.name = "reference";
    return std::shared_ptr<Kernel>(
        TRY(find_backend(target.kind)->compile(function, variant, target, options.compile)));
  };
  LoweredPlan lowered = TRY(lower(problem, cover, options));
  std::map<std::string, StepMeaning> kernels;
  for (size_t k = 0; k < cover.kernels.size(); ++k)
    kernels[lowered.kernel_names[k]] = {lowered.functions[k]};
  std::vector<Tensor> inputs = TRY(synthetic_inputs(graph.function(), 3));
  return verify_layerwise(*lowered.plan, kernels, inputs, options.compile);
}

TEST(Layerwise, FindsNothingInARightPlan) {
  Result<LayerwiseResult> result = check({"reference", "faulty -fault=one_ulp", "reference"});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->steps, 3U);
  EXPECT_FALSE(result->first_wrong);
  EXPECT_EQ(result->worst.step, "faulty_exp");
  EXPECT_LT(result->worst.difference.worst_of_allowed, 1);
}

TEST(Layerwise, BlamesTheFirstWrongKernelAndNoneThatReadsItsResult) {
  Result<LayerwiseResult> result =
      check({"reference", "faulty -fault=wrong_by_a_thousandth", "reference"});
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  ASSERT_TRUE(result->first_wrong);
  EXPECT_EQ(result->first_wrong->step, "faulty_exp");
  EXPECT_EQ(result->worst.step, "faulty_exp");

  result =
      check({"faulty -fault=wrong_by_a_thousandth", "reference", "faulty -fault=wrong_by_a_tenth"});
  ASSERT_TRUE(result->first_wrong);
  EXPECT_EQ(result->first_wrong->step, "faulty_tanh");
  EXPECT_EQ(result->worst.step, "faulty_sigmoid") << "the worst need not be the first";
}

TEST(Layerwise, NamesTheWorstElement) {
  Result<LayerwiseResult> result = check({"faulty -fault=nan", "reference", "reference"});
  ASSERT_TRUE(result.ok() && result->first_wrong);
  const LayerDifference& wrong = *result->first_wrong;
  EXPECT_EQ(element_index(wrong.shape, wrong.difference.worst_element), "[1, 2, 4]");
  EXPECT_THAT(wrong.difference.reason, ::testing::HasSubstr("nan"));
}

TEST(Layerwise, IndexOfAPosition) {
  EXPECT_EQ(element_index({2, 3, 4}, 23), "[1, 2, 3]");
  EXPECT_EQ(element_index({7}, 5), "[5]");
  EXPECT_EQ(element_index({}, 0), "[]");
}

}  // namespace
}  // namespace collage
