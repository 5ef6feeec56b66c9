// What the search is told of costs that nobody measured, and what a cover adds up to.
#include "compiler/cover_problem.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "compiler/backends.h"
#include "compiler/cover_search.h"
#include "partition/rules/union_rule.h"
#include "search/search.h"

namespace collage {
namespace {

// A toolchain with threads of its own.
class PooledBackend : public Backend {
 public:
  std::string name() const override { return "pooled"; }
  std::string version() const override { return "1"; }
  bool brings_own_threads() const override { return true; }
  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<UnionPartitionRule>("pooled", std::vector<PartitionRulePtr>{});
  }
  Result<std::vector<Variant>> variants(const Function&, const Target&,
                                        const CompileOptions&) const override {
    return std::vector<Variant>();
  }
  Result<std::unique_ptr<Kernel>> compile(const Function&, const Variant&, const Target&,
                                          const CompileOptions&) const override {
    return unsupported("pooled");
  }
  bool by_default() const override { return false; }
};

constexpr const char* kChain[] = {"exp", "tanh", "exp", "tanh"};
constexpr double kSeconds = 1e-3;

class CoverProblems : public ::testing::Test {
 protected:
  void SetUp() override {
    register_all();
    if (find_backend("pooled") == nullptr) register_backend(std::make_unique<PooledBackend>());
    Expr x = make_var("x", TensorType{{64, 1024}, DType::kFloat32}), value = x;
    for (const char* op : kChain) value = make_call(op, {value}).value();
    graph_.emplace(make_function({x}, value));
  }

  static PartitionSpecPtr spec(const std::string& kind, bool is_host = false) {
    auto made = std::make_shared<PartitionSpec>();
    made->name = made->target.kind = kind;
    made->is_host = is_host;
    return made;
  }

  // One candidate a call; without `seconds` nobody measured it.
  void add(const PartitionSpecPtr& spec, PostDfsIndex node, std::optional<double> seconds) {
    SubGraph alone = SubGraph::of(*graph_, IndexSet({node}));
    CostedCandidate candidate{{spec->name, alone, spec}, alone.extract(*graph_), nullptr};
    if (seconds) {
      TargetCosts costs;
      costs.target = spec->target.to_string();
      Measured measured;
      measured.median = measured.p10 = measured.p90 = *seconds;
      costs.variants.push_back({Variant::plain("only", candidate.function), measured});
      candidate.costs = std::make_shared<const TargetCosts>(std::move(costs));
    }
    candidates_.push_back(std::move(candidate));
  }
  std::vector<PostDfsIndex> calls() const {
    std::vector<PostDfsIndex> found;
    for (const DataflowGraph::Node& node : graph_->nodes())
      if (node_role(*graph_, node.index) == NodeRole::kKernel) found.push_back(node.index);
    return found;
  }

  std::optional<DataflowGraph> graph_;
  std::vector<CostedCandidate> candidates_;
  std::unique_ptr<CostDatabase> database_ = CostDatabase::in_memory();
  MeasuredCosts costs_{*database_, {}};
};

TEST_F(CoverProblems, AKernelOfTheHostThatNobodyMeasuredIsDearerThanAMeasuredOne) {
  const PartitionSpecPtr host = spec("reference", true), native = spec("native");
  for (const PostDfsIndex call : calls()) {
    add(host, call, std::nullopt);
    add(native, call, 20e-6);
  }
  const CoverProblem problem(*graph_, candidates_, costs_);
  for (size_t c = 0; c < candidates_.size(); ++c) {
    const auto& variants = problem.problem().candidates[c].variants;
    ASSERT_EQ(variants.size(), 1u);
    if (!candidates_[c].is_host()) {
      EXPECT_DOUBLE_EQ(variants[0].seconds, 20e-6);
      continue;
    }
    EXPECT_DOUBLE_EQ(variants[0].seconds, analytic_seconds(candidates_[c].function));
    EXPECT_GT(variants[0].seconds, 20e-6) << "65,536 elements on one slow processor";
  }
}

TEST_F(CoverProblems, ACoverCountsTheSwitchesBetweenPoolsAndNotTheirCharges) {
  const PartitionSpecPtr team = spec("native"), pool = spec("pooled");
  const std::vector<PostDfsIndex> nodes = calls();
  ASSERT_EQ(nodes.size(), 4u);
  for (size_t k = 0; k < nodes.size(); ++k) add(k == 1 || k == 2 ? pool : team, nodes[k], kSeconds);
  const CoverProblem problem(*graph_, candidates_, costs_);
  const Result<SearchResult> found = search_covers(problem.problem());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  const NamedCover cover = named_cover(problem, "cover 1", false, found->covers.at(0));
  EXPECT_EQ(cover.switches, 2u) << "into the pool and back";
  const double kernels = 4 * (kSeconds + CoverProblem::kLaunchPenalty);
  EXPECT_NEAR(cover.plain_seconds, kernels, 1e-12);
  EXPECT_NEAR(cover.predicted_seconds, kernels + 2 * CoverProblem::kPoolSwitch, 1e-12);
  double sum = 0;
  for (const CoverKernel& kernel : cover.kernels) sum += kernel.seconds;
  EXPECT_NEAR(sum, kernels, 1e-12) << "the kernels' parts add up to the whole";
}

TEST_F(CoverProblems, ACoversConversionsArePartOfItsSum) {
  const PartitionSpecPtr team = spec("native");
  for (const PostDfsIndex call : calls()) add(team, call, kSeconds);
  const CoverProblem problem(*graph_, candidates_, costs_);
  Result<SearchResult> found = search_covers(problem.problem());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  Cover& given = found->covers.at(0);
  given.conversions.push_back({{calls()[0], 0}, {}, {}, 1e-4, 1});
  given.seconds += 1e-4 + CoverProblem::kLaunchPenalty;
  const NamedCover cover = named_cover(problem, "cover 1", false, given);
  double sum = 0;
  for (const CoverKernel& kernel : cover.kernels) sum += kernel.seconds;
  for (const ChosenConversion& conversion : cover.conversions) sum += conversion.seconds;
  EXPECT_NEAR(sum, cover.plain_seconds, 1e-12);
  EXPECT_EQ(cover.switches, 0u);
}

}  // namespace
}  // namespace collage
