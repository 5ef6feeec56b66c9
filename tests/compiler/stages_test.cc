// The stages of a compilation, each alone: what one gives follows from what it is given, and what
// is dumped on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "compiler/decision.h"
#include "compiler/given_model.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

constexpr const char* kStagesModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 12, 12), float32], %w: Tensor[(16, 8, 3, 3), float32],
          %v: Tensor[(8, 16, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.conv2d(%1, %v, channels=8, kernel_size=[1, 1]);
  %3 = tanh(%2);
  (add(%3, %x), nn.softmax(%3))
}
)";

class Stages : public testing::GivenModel {
 protected:
  Stages() : GivenModel(kStagesModel) {}
  void SetUp() override {
    GivenModel::SetUp();
    options_.effort = Effort::kFast;
    model_.emplace(model_of(given_));
    Result<Candidates> candidates = find_candidates(given_, options_);
    ASSERT_TRUE(candidates.ok()) << candidates.status().to_string();
    candidates_ = std::move(candidates).value();
  }
  void TearDown() override {
    context_.reset();
    ::unsetenv("COLLAGE_DUMP");
    GivenModel::TearDown();
  }

  void open() {
    auto context = CompileContext::open(*model_, options_, candidates_, nullptr);
    ASSERT_TRUE(context.ok()) << context.status().to_string();
    context_ = std::move(context).value();
  }
  ModelCosts costs_of(const Candidates& candidates) {
    Result<ModelCosts> costs = find_costs(candidates, {}, context_->costs, nullptr);
    EXPECT_TRUE(costs.ok()) << costs.status().to_string();
    return std::move(costs).value();
  }
  CoverSearch covers_of(const ModelCosts& costs) {
    Result<CoverSearch> covers = find_covers(*candidates_.graph, costs.candidates, context_->costs);
    EXPECT_TRUE(covers.ok()) << covers.status().to_string();
    return std::move(covers).value();
  }
  CoverChoice choice_of(const CoverSearch& covers) {
    Result<CoverChoice> choice =
        choose_cover(covers.covers, context_->choosing_among(covers.candidates));
    EXPECT_TRUE(choice.ok()) << choice.status().to_string();
    EXPECT_TRUE(choice->index) << choice->failure;
    return std::move(choice).value();
  }

  std::optional<Model> model_;
  Candidates candidates_;
  std::unique_ptr<CompileContext> context_;
};

TEST_F(Stages, GiveTheSameOfTheSame) {
  open();
  const ModelCosts costs = costs_of(candidates_), again = costs_of(candidates_);
  EXPECT_EQ(to_json(again), to_json(costs));
  CoverSearch covers = covers_of(costs), found = covers_of(again);
  // What was measured on a busy machine is measured again.
  for (int i = 0; i < 4 && to_json(found) != to_json(covers); ++i) {
    covers = std::move(found);
    found = covers_of(again);
  }
  ASSERT_GE(covers.covers.size(), 2u);
  EXPECT_EQ(to_json(found), to_json(covers));
  const CoverChoice choice = choice_of(covers), chosen = choice_of(found);
  EXPECT_EQ(chosen.index, choice.index);
  EXPECT_EQ(described(*chosen.lowered.plan), described(*choice.lowered.plan));
}

// By any costs, also those of another moment, unless something is faster beyond noise.
TEST_F(Stages, LetWhatWasChosenBeforeStay) {
  const auto decided = [&] {
    open();
    Result<Decision> decision = decide(candidates_, *context_);
    EXPECT_TRUE(decision.ok()) << decision.status().to_string();
    return std::move(decision).value();
  };
  const Decision first = decided(), again = decided();
  EXPECT_EQ(again.cover().text, first.cover().text);
  const NamedCover& standing = again.found.covers.back();
  EXPECT_EQ(standing.origin, kKnownPlan);
  EXPECT_TRUE(standing.stays);
  EXPECT_EQ(standing.text, first.cover().text);
}

TEST_F(Stages, LeaveWhatTheyAreGivenAsItIs) {
  open();
  const ModelCosts costs = costs_of(candidates_);
  const json before = to_json(costs);
  const CoverSearch covers = covers_of(costs);
  EXPECT_EQ(to_json(costs), before);
  const json found = to_json(covers);
  choice_of(covers);
  EXPECT_EQ(to_json(covers), found);
}

TEST_F(Stages, AreDumpedInTheOrderInWhichTheyArise) {
  const fs::path dumps = folder_ / "dumps";
  ::setenv("COLLAGE_DUMP", dumps.c_str(), 1);
  const Result<Program> program = Program::compile(*model_, options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  size_t covers = 0, chosen = 0;
  for (const auto& [origin, variation] : program->impl().report.variations) {
    covers += variation.covers;
    chosen += variation.chosen;
  }
  EXPECT_EQ(covers, program->impl().report.covers.size());
  EXPECT_EQ(chosen, 1U);
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dumps))
    names.insert(entry.path().filename());
  EXPECT_THAT(names,
              ElementsAre("stage_00_graph.relay", "stage_01_candidates.json", "stage_02_costs.json",
                          "stage_03_covers.json", "stage_04_partition.relay", "stage_05_plan.txt"));
  const Result<std::string> plan = read_file(dumps / "stage_05_plan.txt");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(*plan, to_text(program->impl().executor->plan()));
  // The partition compiles to the same plan, and nothing is measured for it.
  ::unsetenv("COLLAGE_DUMP");
  const Result<std::string> text = read_file(dumps / "stage_04_partition.relay");
  ASSERT_TRUE(text.ok());
  const Result<Module> partition = parse_module(*text);
  ASSERT_TRUE(partition.ok()) << partition.status().to_string();
  options_.database = folder_ / "empty.db";
  options_.frozen_costs = true;
  const Result<Program> again = Program::compile(model_of(*partition), options_);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(described(*again->impl().plan), described(*program->impl().plan));
}

// Conversions are cheap, and nothing is measured.
class NothingElse : public CostEstimator {
 public:
  Result<std::vector<TargetCosts>> kernel_costs(const std::vector<KernelQuestion>&) override {
    return internal_error("everything has a cost");
  }
  Result<ConversionRow> conversion_cost(const TensorType&, const Encoding&,
                                        const Encoding&) override {
    return cheap_;
  }
  std::optional<ConversionRow> known_conversion(const TensorType&, const Encoding&,
                                                const Encoding&) override {
    return cheap_;
  }
  double kernel_estimate(const Function&, const TargetCosts&, size_t) const override { return 0; }
  double conversion_estimate(const TensorType&, const Encoding&, const Encoding&) const override {
    return 0;
  }

 private:
  const ConversionRow cheap_{"onednn", Measured{1e-6, 1e-6, 1e-6, 40}};
};

// A convolution and the chain behind it: where the toolchain's convolution is cheap by itself and
// native's kernel of the chain is too, the cover takes both, and the plan computes what it should.
TEST_F(Stages, AToolchainsConvolutionMeetsATailOfNative) {
  const Expr x = make_var("x", TensorType{{1, 16, 12, 12}, DType::kFloat32});
  const Expr w = make_var("w", TensorType{{16, 16, 3, 3}, DType::kFloat32});
  const std::vector<Tensor> values =
      synthetic_inputs(make_function({x, w}, make_tuple({x, w})), 7).value();
  const Attrs same{{"padding", Ints{1, 1, 1, 1}}};
  Expr y = make_call("nn.conv2d", {x, make_constant(values[1])}, same).value();
  for (const char* op : {"tanh", "nn.relu"}) y = make_call(op, {y}).value();
  const Function main = make_function({x}, y);
  const Candidates candidates = find_candidates(Module(main), options_).value();
  const DataflowGraph& graph = *candidates.graph;
  model_.emplace(model_of(Module(main)));
  context_ = CompileContext::open(*model_, options_, candidates, nullptr).value();

  const std::set<std::string> cheap = {"onednn nn.conv2d", "native tanh+nn.relu"};
  const auto kernel = [&](const CandidatePartition& candidate) {
    return candidate.spec->target.to_string() + " " + candidate.sub_graph.ops_label(graph);
  };
  std::vector<CostedCandidate> costed;
  for (const CandidatePartition& candidate : candidates.found) {
    const double seconds = cheap.contains(kernel(candidate)) ? 1e-6 : 1e-3;
    const Function function = candidate.sub_graph.extract(graph);
    auto costs = std::make_shared<TargetCosts>();
    const Target& target = candidate.spec->target;
    costs->target = target.to_string();
    const Result<std::vector<Variant>> variants =
        find_backend(target.kind)->variants(function, target, context_->compile);
    if (!variants) costs->refusal = variants.status().to_string();
    if (variants)
      for (const Variant& variant : *variants)
        costs->variants.push_back({variant, Measured{seconds, seconds, seconds, 40}});
    costed.push_back({candidate, function, std::move(costs)});
  }
  NothingElse estimator;
  const CoverSearch found = find_covers(graph, costed, estimator).value();
  std::vector<std::string> kernels;
  for (const Cover::Kernel& chosen : found.covers.at(0).kernels)
    kernels.push_back(kernel(found.candidates[chosen.candidate].partition));
  EXPECT_THAT(kernels, ElementsAre("onednn nn.conv2d", "native tanh+nn.relu"));

  const Result<LoweredPlan> lowered = context_->lower_cover(found.covers[0], found.candidates);
  ASSERT_TRUE(lowered.ok()) << lowered.status().to_string();
  std::vector<std::string> targets;
  for (const Step& step : lowered->plan->steps) targets.push_back(step.target);
  EXPECT_THAT(targets, IsSupersetOf({"onednn", "native"}));  // and conversions
  Executor executor = Executor::create(lowered->plan, options_.threads).value();
  std::vector<Tensor> outputs = {Tensor::empty(DType::kFloat32, {1, 16, 12, 12})};
  const std::vector<Tensor> inputs = {values[0]};
  const Status ran = executor.run(inputs, outputs);
  ASSERT_TRUE(ran.ok()) << ran.to_string();
  const std::vector<Tensor> expected = interpret(main, inputs).value();
  const Difference difference = compare_tensors(outputs[0], expected[0], model_tolerance());
  EXPECT_TRUE(difference.within) << difference.reason;
}

}  // namespace
}  // namespace collage
