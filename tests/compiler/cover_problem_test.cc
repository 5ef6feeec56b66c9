// What the search is told of costs that nobody measured, what is asked for then, and what a cover
// adds up to.
#include "choose/cover_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "choose/cover_search.h"
#include "compiler/bare_spec.h"
#include "partition/rules/union_rule.h"
#include "search/search.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

// A toolchain with threads of its own.
class PooledBackend : public Backend {
 public:
  PooledBackend()
      : Backend("pooled", [] {
          return BackendTraits{.version = "1", .by_default = false, .brings_own_threads = true};
        }) {}
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
};

Measured exactly(double seconds) { return {seconds, seconds, seconds, 20}; }

// Answers with what is given, and keeps what it was asked for. Until then everything costs nothing.
class GivenCosts : public CostEstimator {
 public:
  std::map<std::string, double> conversions;  // by "from>to"; others cannot be made
  std::map<std::string, double> kernels;      // by target
  std::set<std::string> known;                // conversions that need no asking
  std::map<std::string, double> estimates;    // of kernels, by target; of others 0
  std::vector<std::string> asked;

  Result<std::vector<TargetCosts>> kernel_costs(
      const std::vector<KernelQuestion>& questions) override {
    std::vector<TargetCosts> answers;
    for (const KernelQuestion& question : questions) {
      const std::string target = question.target.to_string();
      asked.push_back(target);
      answers.emplace_back().target = target;
      answers.back().variants.push_back(
          {Variant::plain("answered", question.function), exactly(kernels.at(target))});
    }
    return answers;
  }
  Result<ConversionRow> conversion_cost(const TensorType&, const Encoding& from,
                                        const Encoding& to) override {
    asked.push_back(name(from, to));
    return row(name(from, to));
  }
  std::optional<ConversionRow> known_conversion(const TensorType&, const Encoding& from,
                                                const Encoding& to) override {
    if (known.count(name(from, to)) == 0) return std::nullopt;
    return row(name(from, to));
  }
  double kernel_estimate(const Function&, const TargetCosts& costs, size_t) const override {
    const auto it = estimates.find(costs.target);
    return it == estimates.end() ? 0 : it->second;
  }
  double conversion_estimate(const TensorType&, const Encoding&, const Encoding&) const override {
    return 0;
  }

 private:
  static std::string name(const Encoding& from, const Encoding& to) {
    return from.layout.to_string() + ">" + to.layout.to_string();
  }
  ConversionRow row(const std::string& name) const {
    const auto it = conversions.find(name);
    if (it == conversions.end()) return {"", Invalid{"nobody converts it"}};
    return {"native", exactly(it->second)};
  }
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

  // One candidate a call; without `seconds` nobody measured it.
  void add(const PartitionSpecPtr& spec, PostDfsIndex node, std::optional<double> seconds) {
    SubGraph alone = SubGraph::of(*graph_, IndexSet({node}));
    CostedCandidate candidate{{spec->name, alone, spec}, alone.extract(*graph_), nullptr};
    if (seconds) {
      TargetCosts costs;
      costs.target = spec->target.to_string();
      costs.variants.push_back({Variant::plain("only", candidate.function), exactly(*seconds)});
      candidate.costs = std::make_shared<const TargetCosts>(std::move(costs));
    }
    candidates_.push_back(std::move(candidate));
  }
  // A kernel of the chain that takes and gives tensors in that layout.
  void add_blocked(const PartitionSpecPtr& spec, PostDfsIndex node, double seconds) {
    add(spec, node, seconds);
    TargetCosts costs = *candidates_.back().costs;
    const Encoding blocked{DType::kFloat32, *Layout::parse("aB8b"), VirtualDevice()};
    costs.variants[0].variant.inputs = costs.variants[0].variant.outputs = {blocked};
    candidates_.back().costs = std::make_shared<const TargetCosts>(std::move(costs));
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
  const PartitionSpecPtr host = testing::bare_spec("reference", true),
                         native = testing::bare_spec("native");
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
  const PartitionSpecPtr team = testing::bare_spec("native"), pool = testing::bare_spec("pooled");
  const std::vector<PostDfsIndex> nodes = calls();
  ASSERT_EQ(nodes.size(), 4u);
  for (size_t k = 0; k < nodes.size(); ++k) add(k == 1 || k == 2 ? pool : team, nodes[k], kSeconds);
  const CoverProblem problem(*graph_, candidates_, costs_);
  const Result<SearchResult> found = search_covers(problem.problem());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  const NamedCover cover = named_cover(problem, "cover 1", found->covers.at(0));
  EXPECT_EQ(cover.switches, 2u) << "into the pool and back";
  const double kernels = 4 * (kSeconds + CoverCharges().launch);
  EXPECT_NEAR(cover.plain_seconds, kernels, 1e-12);
  EXPECT_NEAR(cover.seconds, kernels + 2 * CoverCharges().pool_switch, 1e-12);
  double sum = 0;
  for (const Cover::Kernel& kernel : cover.kernels) sum += kernel.seconds;
  EXPECT_NEAR(sum, kernels, 1e-12) << "the kernels' parts add up to the whole";
}

TEST_F(CoverProblems, ACoversConversionsArePartOfItsSum) {
  const PartitionSpecPtr team = testing::bare_spec("native");
  for (const PostDfsIndex call : calls()) add(team, call, kSeconds);
  const CoverProblem problem(*graph_, candidates_, costs_);
  Result<SearchResult> found = search_covers(problem.problem());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  Cover& given = found->covers.at(0);
  given.conversions.push_back({{calls()[0], 0}, {}, {}, 1e-4, 1});
  given.seconds += 1e-4 + CoverCharges().launch;
  const NamedCover cover = named_cover(problem, "cover 1", given);
  double sum = 0;
  for (const Cover::Kernel& kernel : cover.kernels) sum += kernel.seconds;
  for (const ChosenConversion& conversion : cover.conversions) sum += conversion.seconds;
  EXPECT_NEAR(sum, cover.plain_seconds, 1e-12);
  EXPECT_EQ(cover.switches, 0u);
}

// As a module says that was printed where some other kernel had that encoding.
TEST_F(CoverProblems, StatedConversionsPassThroughEncodingsOfNoKernel) {
  const std::string type = "Tensor[(64, 1024), float32] ";
  const auto cover_of = [&](const std::string& stated) {
    const Function function = graph_->function();
    graph_.emplace(make_function(function->params, function->body, {{"conversions", stated}}));
    candidates_.clear();
    for (const PostDfsIndex call : calls())
      add_blocked(testing::bare_spec("native"), call, kSeconds);
    GivenCosts costs;
    costs.conversions = {{"plain>aB8b", 1e-6}, {"aB8b>aB16b", 1e-6}, {"aB16b>plain", 1e-6}};
    CoverProblem problem(*graph_, candidates_, costs);
    const Result<SearchResult> found =
        problem.settle([&] { return search_covers(problem.problem()); });
    std::string text;
    if (!found.ok()) return found.status().message();
    for (const ChosenConversion& change : found->covers[0].conversions)
      text += change.from.to_string() + ">" + change.to.to_string() + " ";
    return text;
  };
  const std::string in = type + "float32 -> float32:aB8b; ",
                    out = type + "float32:aB8b -> float32:aB16b; ";
  EXPECT_EQ(cover_of(in + out + type + "float32:aB16b -> float32"),
            "float32>float32:aB8b float32:aB8b>float32:aB16b float32:aB16b>float32 ");
  EXPECT_EQ(cover_of(in + type + "float32:aB8b -> float32:aBcd16b; " + type +
                     "float32:aBcd16b -> float32"),
            "no choice of kernels covers the whole graph")
      << "of another rank";
  EXPECT_EQ(cover_of(in + out), "no choice of kernels covers the whole graph");
  EXPECT_EQ(cover_of(in + "float32; -> ; nothing -> of: the@kind"),
            "no choice of kernels covers the whole graph");
}

// A chain of a, a, b, b: blocked kernels of 1 ms each, or plain ones of 2 ms.
class AskedFor : public CoverProblems {
 protected:
  void SetUp() override {
    CoverProblems::SetUp();
    const PartitionSpecPtr native = testing::bare_spec("native");
    for (const PostDfsIndex call : calls()) {
      add(native, call, 2 * kSeconds);
      add_blocked(native, call, kSeconds);
    }
  }
  // The best cover, as texts of its kernels' layouts and its conversions.
  std::string best(GivenCosts& costs) {
    CoverProblem problem(*graph_, candidates_, costs);
    SearchOptions options;
    options.top_k = 1;
    const Result<SearchResult> found =
        problem.settle([&] { return search_covers(problem.problem(), options); });
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    if (!found.ok()) return "";
    std::string text;
    for (const Cover::Kernel& kernel : found->covers[0].kernels)
      text += kernel.candidate % 2 == 0 ? "plain " : "blocked ";
    return text + std::to_string(found->covers[0].conversions.size());
  }
};

TEST_F(AskedFor, AreTheConversionsThatACoverUses) {
  GivenCosts costs;
  costs.conversions = {{"plain>aB8b", 0.5 * kSeconds}, {"aB8b>plain", 0.5 * kSeconds}};
  EXPECT_EQ(best(costs), "blocked blocked blocked blocked 2");
  EXPECT_THAT(costs.asked, ElementsAre("plain>aB8b", "aB8b>plain"));
}

TEST_F(AskedFor, AreNoneThatNoCoverWants) {
  GivenCosts costs;
  for (CostedCandidate& candidate : candidates_) {  // blocked ones are not worth converting for
    if (candidate.costs->variants[0].variant.inputs[0].is_plain()) continue;
    TargetCosts dear = *candidate.costs;
    dear.variants[0].cost = exactly(3 * kSeconds);
    candidate.costs = std::make_shared<const TargetCosts>(std::move(dear));
  }
  EXPECT_EQ(best(costs), "plain plain plain plain 0");
  EXPECT_THAT(costs.asked, ElementsAre());
}

TEST_F(AskedFor, AnAnswerMayTurnTheChoice) {
  GivenCosts costs;
  costs.conversions = {{"plain>aB8b", 5 * kSeconds}, {"aB8b>plain", 5 * kSeconds}};
  EXPECT_EQ(best(costs), "plain plain plain plain 0");
  costs.conversions.clear();
  EXPECT_EQ(best(costs), "plain plain plain plain 0") << "nobody can convert";
}

// What a compile measured is known to the next one, which chooses the same.
TEST_F(AskedFor, WhatIsKnownAlreadyChangesNoChoice) {
  for (const double seconds : {0.5 * kSeconds, 5 * kSeconds}) {
    GivenCosts cold;
    cold.conversions = {{"plain>aB8b", seconds}, {"aB8b>plain", seconds}};
    const std::string chosen = best(cold);
    GivenCosts warm = cold;
    warm.known.insert(cold.asked.begin(), cold.asked.end());
    warm.asked.clear();
    EXPECT_EQ(best(warm), chosen);
    EXPECT_THAT(warm.asked, ElementsAre());
  }
}

TEST_F(AskedFor, IsNoKernelThatCannotBeInABestCover) {
  // Two targets offer the whole chain in kernels of a call: one may take as little as a quarter of
  // what is known, the other takes twice as much at least.
  candidates_.clear();
  const PartitionSpecPtr native = testing::bare_spec("native"), may = testing::bare_spec("may"),
                         never = testing::bare_spec("never");
  for (const PostDfsIndex call : calls()) {
    add(native, call, kSeconds);
    for (const PartitionSpecPtr& offering : {may, never}) {
      add(offering, call, kSeconds);
      TargetCosts offer = *candidates_.back().costs;
      offer.variants[0].cost = Unknown{};
      candidates_.back().costs = std::make_shared<const TargetCosts>(std::move(offer));
    }
  }
  GivenCosts costs;
  costs.estimates = {{"may", 0.25 * kSeconds}, {"never", 2 * kSeconds}};
  costs.kernels = {{"may", 0.5 * kSeconds}};
  CoverProblem problem(*graph_, candidates_, costs);
  SearchOptions options;
  options.top_k = 1;
  const Result<SearchResult> found =
      problem.settle([&] { return search_covers(problem.problem(), options); });
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_NEAR(found->covers[0].seconds, 4 * (0.5 * kSeconds + CoverCharges().launch), 1e-9);
  EXPECT_EQ(std::count(costs.asked.begin(), costs.asked.end(), "may"), 4);
  EXPECT_EQ(std::count(costs.asked.begin(), costs.asked.end(), "never"), 0);
}

TEST_F(AskedFor, OnceWhereCandidatesShareTheirCosts) {
  candidates_.clear();
  const PartitionSpecPtr native = testing::bare_spec("native");
  for (const PostDfsIndex call : calls()) add(native, call, kSeconds);
  TargetCosts offer = *candidates_[0].costs;
  offer.variants[0].cost = Unknown{};
  candidates_[0].costs = candidates_[1].costs =
      std::make_shared<const TargetCosts>(std::move(offer));
  GivenCosts costs;
  costs.kernels = {{"native", 2 * kSeconds}};
  CoverProblem problem(*graph_, candidates_, costs);
  const Result<SearchResult> found =
      problem.settle([&] { return search_covers(problem.problem()); });
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_THAT(costs.asked, ElementsAre("native"));
  EXPECT_NEAR(found->covers[0].seconds, 6 * kSeconds + 4 * CoverCharges().launch, 1e-9);
}

// Covers that were found before the answer go on meaning the same kernels.
TEST_F(AskedFor, VariantsStayWhereTheyWereWhateverAnAnswerLists) {
  const CostedCandidate& candidate = candidates_[0];
  const auto row = [&](const char* name, Cost cost) {
    return MeasuredVariant{Variant::plain(name, candidate.function), std::move(cost)};
  };
  TargetCosts known, answer;
  known.variants = {row("a", Unknown{}), row("b", Unknown{})};
  answer.variants = {row("b", exactly(1)), row("c", exactly(2))};
  const auto numbered = numbered_as(known, std::make_shared<const TargetCosts>(answer));
  ASSERT_EQ(numbered->variants.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Invalid>(numbered->variants[0].cost));
  EXPECT_EQ(measured(numbered->variants[1].cost)->seconds(), 1);
  EXPECT_EQ(numbered->variants[2].variant.name, "c");
  TargetCosts refused;
  refused.refusal = "it fails";
  for (const MeasuredVariant& one :
       numbered_as(known, std::make_shared<const TargetCosts>(refused))->variants)
    EXPECT_EQ(std::get<Invalid>(one.cost).reason, "it fails");
}

TEST_F(AskedFor, CoversAreFoundWithoutAKernelThatFails) {
  candidates_.clear();
  const PartitionSpecPtr native = testing::bare_spec("native"),
                         failing = testing::bare_spec("failing");
  for (const PostDfsIndex call : calls()) add(native, call, kSeconds);
  add(failing, calls()[0], kSeconds);
  TargetCosts offer = *candidates_.back().costs;
  offer.variants[0].cost = Unknown{};
  candidates_.back().costs = std::make_shared<const TargetCosts>(std::move(offer));
  class Failing : public GivenCosts {
   public:
    Result<std::vector<TargetCosts>> kernel_costs(
        const std::vector<KernelQuestion>& questions) override {
      std::vector<TargetCosts> answers(questions.size());
      for (TargetCosts& answer : answers) answer.refusal = "it fails";
      return answers;
    }
  } costs;
  CoverProblem problem(*graph_, candidates_, costs);
  const Result<SearchResult> found =
      problem.settle([&] { return search_covers(problem.problem()); });
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  std::vector<size_t> used;
  for (const Cover::Kernel& kernel : found->covers[0].kernels) used.push_back(kernel.candidate);
  EXPECT_THAT(used, ElementsAre(0, 1, 2, 3));
  EXPECT_NEAR(found->covers[0].seconds, 4 * (kSeconds + CoverCharges().launch), 1e-9);
}

TEST_F(AskedFor, IsAKernelThatNobodyMeasured) {
  GivenCosts costs;
  costs.kernels = {{"reference", 3 * kSeconds}};
  costs.conversions = {{"plain>aB8b", 5 * kSeconds}, {"aB8b>plain", 5 * kSeconds}};
  const PartitionSpecPtr host = testing::bare_spec("reference", true);
  add(host, calls()[0], std::nullopt);
  CoverProblem problem(*graph_, candidates_, costs);
  const Result<SearchResult> found =
      problem.settle([&] { return search_covers(problem.problem()); });
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(std::count(costs.asked.begin(), costs.asked.end(), "reference"), 1);
  EXPECT_EQ(candidates_.back().costs, nullptr) << "what the search begins with stays as it was";
  const MeasuredVariant& answer = problem.candidates().back().costs->variants.at(0);
  ASSERT_NE(measured(answer.cost), nullptr);
  EXPECT_DOUBLE_EQ(measured(answer.cost)->seconds(), 3 * kSeconds);
  EXPECT_NEAR(found->covers[0].seconds, 4 * (2 * kSeconds + CoverCharges().launch), 1e-9);
}

}  // namespace
}  // namespace collage
