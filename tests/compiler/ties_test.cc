// Which of costs that cannot be told apart counts: by costs that are made up, with their spread.
#include "choose/ties.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "backend/targets/backends.h"
#include "choose/cover_problem.h"
#include "choose/cover_search.h"
#include "compiler/bare_spec.h"
#include "search/search.h"

namespace collage {
namespace {

constexpr double kSpread = 0.05;  // of samples: a median errs by 1.5%

Measured about(double seconds) {
  return {seconds, (1 - kSpread) * seconds, (1 + kSpread) * seconds, 10};
}
Measured exactly(double seconds) { return {seconds, seconds, seconds, 1}; }

// Asked for nothing.
class AllIsKnown : public CostEstimator {
 public:
  Result<std::vector<TargetCosts>> kernel_costs(const std::vector<KernelQuestion>&) override {
    return internal_error("all is known");
  }
  Result<ConversionRow> conversion_cost(const TensorType&, const Encoding&,
                                        const Encoding&) override {
    return ConversionRow{"native", exactly(conversion)};
  }
  std::optional<ConversionRow> known_conversion(const TensorType&, const Encoding&,
                                                const Encoding&) override {
    return ConversionRow{"native", exactly(conversion)};
  }
  double kernel_estimate(const Function&, const TargetCosts&, size_t) const override { return 1; }
  double conversion_estimate(const TensorType&, const Encoding&, const Encoding&) const override {
    return 1;
  }
  double conversion = 1e-3;
};

// A chain of calls.
class Ties : public ::testing::Test {
 protected:
  Ties() {
    register_all();
    const Expr x = make_var("x", TensorType{{16, 64}, DType::kFloat32});
    Expr value = x;
    for (const char* op : {"exp", "tanh", "exp", "tanh"}) value = make_call(op, {value}).value();
    graph_.emplace(make_function({x}, value));
  }

  // A candidate of that call (node 0 is x), with a variant for each cost.
  void add(const PartitionSpecPtr& spec, PostDfsIndex call, const std::vector<Measured>& costs) {
    SubGraph alone = SubGraph::of(*graph_, IndexSet({call}));
    CostedCandidate candidate{{spec->name, alone, spec}, alone.extract(*graph_), nullptr};
    TargetCosts all;
    all.target = spec->target.to_string();
    for (const Measured& cost : costs)
      all.variants.push_back(
          {Variant::plain("v" + std::to_string(all.variants.size()), candidate.function), cost});
    candidate.costs = std::make_shared<const TargetCosts>(std::move(all));
    candidates_.push_back(std::move(candidate));
  }
  // The same for every call.
  void add_all(const PartitionSpecPtr& spec, const std::vector<Measured>& costs) {
    for (PostDfsIndex call = 1; call <= 4; ++call) add(spec, call, costs);
  }
  NamedCover best() {
    const CoverProblem problem(*graph_, candidates_, estimator_);
    const Result<SearchResult> found = search_covers(problem.problem());
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return found.ok() ? named_cover(problem, "cover 1", found->covers[0]) : NamedCover();
  }
  // The kernels of the best cover: "native 0" is the first variant.
  std::string kernels() {
    std::string text;
    for (const Cover::Kernel& kernel : best().kernels)
      text += candidates_[kernel.candidate].partition.spec->name + " " +
              std::to_string(kernel.variant) + ", ";
    return text;
  }
  static std::string four(const std::string& kernel) {
    return kernel + ", " + kernel + ", " + kernel + ", " + kernel + ", ";
  }

  std::optional<DataflowGraph> graph_;
  std::vector<CostedCandidate> candidates_;
  AllIsKnown estimator_;
};

TEST_F(Ties, GoToTheVariantThatItsBackendPrefers) {
  add_all(testing::bare_spec("native"), {about(1.03), about(1.02), about(1)});
  EXPECT_EQ(kernels(), four("native 0"));
}

TEST_F(Ties, DoNotHideWhatIsFaster) {
  add_all(testing::bare_spec("native"), {about(1.06), about(1.02), about(1)});
  EXPECT_EQ(kernels(), four("native 1")) << "the first is slower than what timing in turns can err";
}

TEST_F(Ties, AreNoneBeyondATenthHoweverDisturbed) {
  Measured slow = about(1.2);
  slow.p90 = 3;
  slow.p10 = 0.5;
  add_all(testing::bare_spec("native"), {slow, about(1)});
  EXPECT_EQ(kernels(), four("native 1"));
}

TEST_F(Ties, GoToTheTargetThatIsDeclaredFirst) {
  add_all(testing::bare_spec("onednn"), {about(1.06)});
  add_all(testing::bare_spec("native"), {about(1)});
  EXPECT_EQ(kernels(), four("onednn 0")) << "they were timed at different moments";
  candidates_.clear();
  add_all(testing::bare_spec("native"), {about(1)});
  add_all(testing::bare_spec("onednn"), {about(1.06)});
  EXPECT_EQ(kernels(), four("native 0"));
  candidates_.clear();
  add_all(testing::bare_spec("onednn"), {about(1.12)});
  add_all(testing::bare_spec("native"), {about(1)});
  EXPECT_EQ(kernels(), four("native 0"));
}

TEST_F(Ties, AreNoneOfTheHostNorOfGivenCosts) {
  add_all(testing::bare_spec("reference", true), {about(1.001)});
  add_all(testing::bare_spec("native"), {about(1)});
  EXPECT_EQ(kernels(), four("native 0"));
  candidates_.clear();
  add_all(testing::bare_spec("onednn"), {exactly(1.001)});
  add_all(testing::bare_spec("native"), {exactly(1.0005), exactly(1)});
  EXPECT_EQ(kernels(), four("native 1"));
}

TEST_F(Ties, AreNoneBetweenEncodings) {
  add_all(testing::bare_spec("native"), {about(1.02), about(1)});
  for (CostedCandidate& candidate : candidates_) {
    TargetCosts costs = *candidate.costs;
    const Encoding blocked{DType::kFloat32, *Layout::parse("aB8b"), VirtualDevice()};
    costs.variants[1].variant.inputs = costs.variants[1].variant.outputs = {blocked};
    candidate.costs = std::make_shared<const TargetCosts>(std::move(costs));
  }
  EXPECT_EQ(kernels(), four("native 1")) << "two changes of layout, for four kernels";
  estimator_.conversion = 0.1;
  EXPECT_EQ(kernels(), four("native 0"));
}

TEST_F(Ties, ChangeNoFigure) {
  add_all(testing::bare_spec("native"), {about(1.03), about(1)});
  const NamedCover cover = best();
  const double each = about(1.03).seconds() + CoverCharges().launch;
  EXPECT_NEAR(cover.plain_seconds, 4 * each, 1e-9);
  for (const Cover::Kernel& kernel : cover.kernels) EXPECT_NEAR(kernel.seconds, each, 1e-9);
  EXPECT_NEAR(cover.seconds, 4 * (about(1).seconds() + CoverCharges().launch), 1e-5)
      << "what it was searched at: no cover costs less";
}

// What the next measurement finds is a little different, and the plan is the same.
TEST_F(Ties, GiveOnePlanWhateverTheNoise) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(0.99, 1.01);
  std::set<std::string> plans, fastest;
  for (int compile = 0; compile < 10; ++compile) {
    candidates_.clear();
    std::string least;
    for (PostDfsIndex call = 1; call <= 4; ++call) {
      std::vector<Measured> costs;
      for (const double truth : {1.0, 1.005, 0.995, 1.2})
        costs.push_back(about(truth * noise(random)));
      add(testing::bare_spec("onednn"), call, costs);
      for (Measured& cost : costs) cost = about(noise(random));
      add(testing::bare_spec("native"), call, costs);
    }
    plans.insert(kernels());
    for (const CostedCandidate& candidate : candidates_)
      least += fastest_variant(*candidate.costs, [](const auto&) { return true; })->variant.name;
    fastest.insert(least);
  }
  EXPECT_EQ(plans, std::set<std::string>{four("onednn 0")});
  EXPECT_EQ(fastest.size(), 10u) << "the lowest figures would have given as many plans";
}

TEST_F(Ties, OfWholeCoversGoToFewerToolchainsAndThenToFewerKernels) {
  const auto cover = [](size_t toolchains, size_t kernels, int priorities) {
    NamedCover made;
    made.toolchains = toolchains;
    made.kernels.resize(kernels);
    made.priorities = priorities;
    return made;
  };
  EXPECT_LT(declared_order(cover(1, 9, 90)), declared_order(cover(2, 3, 10)));
  NamedCover standing = cover(3, 9, 90);
  standing.stays = true;
  EXPECT_LT(declared_order(standing), declared_order(cover(1, 3, 10))) << "it was there before";
  EXPECT_LT(declared_order(cover(1, 3, 90)), declared_order(cover(1, 4, 10)));
  EXPECT_LT(declared_order(cover(1, 3, 60)), declared_order(cover(1, 3, 90)));
  add(testing::bare_spec("onednn"), 1, {exactly(1)});
  add(testing::bare_spec("memory"), 2, {exactly(1)});
  for (const PostDfsIndex call : {3, 4})
    add(testing::bare_spec("reference", true), call, {exactly(1)});
  const NamedCover found = best();
  EXPECT_EQ(found.toolchains, 1u) << "neither the host nor what only places tensors is one";
  EXPECT_EQ(found.priorities,
            find_backend("onednn")->traits().priority + find_backend("memory")->traits().priority);
}

}  // namespace
}  // namespace collage
