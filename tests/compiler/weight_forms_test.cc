// Programs of one model for several shapes keep one set of weights: their kernels pack these in one
// form, and hold equal ones once.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>

#include "backend/targets/backends.h"
#include "base/scratch_folder.h"
#include "compiler/compile.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "measure/compile_ahead.h"
#include "ops/interpreter.h"
#include "runtime/thread_team.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

constexpr int64_t kHidden = 512;  // weights of 1 MiB

// x · w of that many rows; of equal seeds the weights are equal, in different memory.
Model product(int64_t rows, uint64_t seed = 1) {
  Tensor w = Tensor::empty(DType::kFloat32, {kHidden, kHidden});
  for (int64_t i = 0; i < w.size(); ++i)
    w.data<float>()[i] = static_cast<float>((static_cast<uint64_t>(i) * 7919 + seed) % 1000) / 1e4F;
  const Expr x = make_var("x", TensorType{{rows, kHidden}, DType::kFloat32});
  const Expr y = make_call("nn.dense", {x, make_constant(std::move(w))}).value();
  Module module(make_function({x}, y));
  return model_of(module);
}

bool has_openvino() {
  return find_backend("openvino") != nullptr && find_backend("openvino")->available().ok();
}

class SharedWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    register_all();
    options_.threads = 1;
    options_.worker = std::filesystem::read_symlink("/proc/self/exe");
    options_.database = folder_.path() / "costs.db";
    options_.effort = Effort::kFast;
    options_.always_measure = true;
  }

  Program compile(const Model& model, std::vector<std::string> targets) {
    options_.targets = std::move(targets);
    Result<Program> program = Program::compile(model, options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    const std::vector<Tensor> inputs = synthetic_inputs(model.impl().module.main(), 5).value();
    const std::vector<Tensor> expected = interpret(model.impl().module.main(), inputs).value(),
                              outputs = program->run(inputs).value();
    for (size_t i = 0; i < expected.size(); ++i) {
      const Difference difference = compare_tensors(outputs[i], expected[i], model_tolerance());
      EXPECT_TRUE(difference.within) << difference.reason;
    }
    return std::move(program).value();
  }
  // Where its kernels keep large constants; held, since some are copied to be saved.
  using Kept = std::set<std::shared_ptr<const void>>;
  static Kept kept(const Program& program) {
    Kept found;
    for (const Step& step : program.impl().plan->steps) found.merge(kept(*step.kernel));
    return found;
  }
  static Kept kept(const Kernel& kernel) {
    Kept found;
    const TeamScope team(1);  // which they were compiled for: oneDNN makes a saved one again
    const Result<SavedKernel> saved = kernel.save();
    // In a form of its own, which oneDNN cannot describe.
    if (!saved) return {std::shared_ptr<const void>(std::shared_ptr<void>(), &kernel)};
    for (const SharedBytes& constant : saved->constants)
      if (constant.bytes >= size_t{1} << 20) found.insert(constant.data);
    return found;
  }
  static std::string target(const Program& program) {
    return program.impl().report.kernels.at(0).target;
  }

  const ScratchFolder folder_ =
      ScratchFolder::create(std::filesystem::temp_directory_path(), "collage_weight_forms").value();
  ProgramOptions options_;
};

TEST_F(SharedWeights, OfOneFormAreOnce) {
  const Program one = compile(product(1), {"native"}), many = compile(product(64), {"native"});
  EXPECT_EQ(kept(one).size(), 1U);
  EXPECT_EQ(kept(one), kept(many));
  EXPECT_NE(kept(one), kept(compile(product(64, 2), {"native"})));
}

TEST_F(SharedWeights, OfSeveralFormsAreApart) {
  // Some forms of oneDNN's are native's.
  const Program one = compile(product(1), {"native"}), many = compile(product(64), {"reference"});
  EXPECT_EQ(kept(one).size(), 1U);
  EXPECT_NE(kept(one), kept(many));
}

// Whichever is faster.
TEST_F(SharedWeights, LaterProgramsKeepTheFormOfTheFirst) {
  for (const std::string first : {"native", "onednn"}) {
    options_.weight_forms = make_weight_forms();
    const Program one = compile(product(1), {first}),
                  many = compile(product(64), {"native", "onednn"});
    EXPECT_EQ(target(many), first);
    EXPECT_EQ(kept(one), kept(many)) << first;
  }
}

// Embeddings that are the last product's weights too: rows are read in place.
TEST_F(SharedWeights, ATableStaysPlain) {
  const Function dense = product(64).impl().module.main();
  const Expr table = as<CallNode>(dense->body)->args[1];
  const Expr rows = make_var("rows", TensorType{{3}, DType::kInt64});
  const Expr taken = make_call("take", {table, rows}, {{"axis", int64_t{0}}}).value();
  Module module(make_function({dense->params[0], rows}, make_tuple({dense->body, taken})));
  const auto forms = [&] {
    const Program program = compile(model_of(module), {"onednn"});
    std::set<std::string> found;
    for (const ReportedPlan::Kernel& kernel : program.impl().report.kernels)
      found.insert(kernel.variant.weights);
    return found;
  };
  options_.weight_forms = make_weight_forms();
  EXPECT_EQ(forms(), std::set<std::string>{kPlainWeights});
}

TEST_F(SharedWeights, FormsThatNobodyElseCanUseAreLeftOut) {
  if (!has_openvino()) GTEST_SKIP() << "openvino is not here";
  options_.weight_forms = make_weight_forms();
  const Program program = compile(product(64), {"native", "openvino"});
  EXPECT_EQ(target(program), "native");
  std::string reason;
  for (const Alternative& other : program.impl().report.kernels.at(0).alternatives)
    if (const auto* invalid = std::get_if<Invalid>(&other.cost); other.target == "openvino")
      reason = invalid != nullptr ? invalid->reason : "none";
  EXPECT_EQ(reason, "it would keep its weights in a form of its own");
}

// A toolchain that packs weights in its own way: nothing is left to choose.
TEST_F(SharedWeights, AnyFormIsBetterThanTheHost) {
  if (!has_openvino()) GTEST_SKIP() << "openvino is not here";
  options_.weight_forms = make_weight_forms();
  for (const bool measure : {true, false}) {
    options_.always_measure = measure;
    EXPECT_EQ(target(compile(product(64), {"openvino"})), "openvino");
  }
  // Nor where the form in memory is nobody's here.
  compile(product(1), {"native"});
  EXPECT_EQ(target(compile(product(64), {"openvino"})), "openvino");
}

// A rival's weights would be in the caches.
TEST_F(SharedWeights, KernelsThatAreTimedShareNothing) {
  const Function function = product(64).impl().module.main();
  const Target target = Target::parse("native").value();
  MeasureTask task;
  const Variant variant =
      find_backend("native")->variants(function, target, task.options).value().at(0);
  for (const CacheState cache : {CacheState::kStreaming, CacheState::kCold}) {
    task.cache = cache;
    const auto first = compile_to_time(function, variant, target, task).value(),
               second = compile_to_time(function, variant, target, task).value();
    EXPECT_EQ(kept(*first).size(), 1U);
    EXPECT_NE(kept(*first), kept(*second));
  }
}

TEST_F(SharedWeights, TheReportHoldsNone) {
  options_.weight_forms = make_weight_forms();
  std::weak_ptr<const ExprNode> weights;
  std::optional<Program> program;
  {
    const Model model = product(64);
    for (const Expr& expr : post_order(model.impl().module.main()->body))
      if (expr->kind() == ExprKind::kConstant) weights = expr;
    program.emplace(compile(model, {"native"}));
    EXPECT_FALSE(weights.expired());
  }
  EXPECT_TRUE(weights.expired());
  const ReportedPlan::Kernel& kernel = program->impl().report.kernels.at(0);
  EXPECT_EQ(kernel.function->result_type().leaves()[0].shape, (Shape{64, kHidden}));
}

}  // namespace
}  // namespace collage
