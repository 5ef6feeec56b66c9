// Models of half precision: computed in float32 by backends that know no half, held to what the
// model computes in its own types.
#include "ops/half.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "backend/targets/backends.h"
#include "collage/program.h"
#include "compiler/compile.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "ops/interpreter.h"
#include "passes/widen_halves.h"
#include "report/model_reference.h"
#include "report/saved_module.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Half : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    register_all();
    folder_ = fs::temp_directory_path() / ("collage_half_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    options_.threads = 1;
    options_.worker = fs::read_symlink("/proc/self/exe");
    options_.database = folder_ / "costs.db";
    options_.effort = Effort::kFast;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    Result<Expr> made = make_call(op, std::move(args), std::move(attrs));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return *made;
  }
  static Expr weights(Shape shape, uint64_t seed) {
    return make_constant(synthetic_constant({std::move(shape), GetParam()}, seed).value());
  }

  // Convolution, bias, ReLU, pooling, a product and softmax, of that type from end to end.
  Model model() {
    const Expr x = make_var("x", TensorType{{1, 3, 12, 12}, GetParam()});
    const Expr image =
        call("nn.conv2d", {x, weights({8, 3, 3, 3}, 1)}, {{"padding", Ints{1, 1, 1, 1}}});
    const Expr active = call("nn.relu", {call("nn.bias_add", {image, weights({8}, 2)})});
    const Expr pooled = call("nn.batch_flatten", {call("nn.global_avg_pool2d", {active})});
    const Expr scores = call("nn.dense", {pooled, weights({10, 8}, 3)});
    const Function function = make_function({x}, call("nn.softmax", {scores}));
    EXPECT_TRUE(save_module(Module(function), folder_ / "model.relay").ok());
    Result<Model> loaded = Model::load(folder_ / "model.relay");
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    return std::move(loaded).value();
  }

  ProgramOptions options_;
  fs::path folder_;
};

TEST_P(Half, NothingRunsOnTheReference) {
  const Model loaded = model();
  ASSERT_TRUE(loaded.impl().in_halves.has_value());
  EXPECT_EQ(loaded.inputs()[0].dtype, GetParam());
  EXPECT_EQ(loaded.outputs()[0].dtype, GetParam());
  const ModelReference own = model_reference(loaded, 0);
  EXPECT_THAT(own.bound, HasSubstr("rounds to " + std::string(dtype_name(GetParam()))));
  const Function& wide = loaded.impl().module.main();
  const std::vector<Tensor> inputs = synthetic_inputs(wide, 5).value();
  for (std::vector<std::string> targets :
       {std::vector<std::string>{"native"}, std::vector<std::string>{"native", "onednn"}}) {
    SCOPED_TRACE(targets.back());
    options_.targets = targets;
    Result<Program> program = Program::compile(loaded, options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const CompileReport& report = program->impl().report;
    EXPECT_FALSE(report.kernels.empty());
    for (const ReportedPlan::Kernel& kernel : report.kernels)
      EXPECT_FALSE(kernel.target.starts_with("reference")) << kernel.name;
    const Tensor output = program->run(inputs).value()[0];
    EXPECT_EQ(output.dtype(), GetParam());
    const Difference of_own =
        compare_tensors(output, interpret(own.function, inputs).value()[0], own.tolerance);
    EXPECT_TRUE(of_own.within) << of_own.reason;
    const Difference of_wide = compare_tensors(output, interpret(wide, inputs).value()[0],
                                               kept_as(model_tolerance(), GetParam()));
    EXPECT_TRUE(of_wide.within) << of_wide.reason;
  }
}

// What the user allows comes on top of what the model's own rounding makes.
TEST_P(Half, AnErrorMayBeAllowedBesides) {
  const Model loaded = model();
  const double own = model_reference(loaded, 0).tolerance.of_scale;
  EXPECT_DOUBLE_EQ(model_reference(loaded, 2e-2).tolerance.of_scale, own + 2e-2);
}

// `verify` and --for this of an artifact hold its program to the model's own form too.
TEST_P(Half, AnArtifactHoldsTheModelAsItWasImported) {
  const Model loaded = model();
  options_.targets = {"reference"};
  Result<Program> program = Program::compile(loaded, options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const Status saved = program->save(loaded, folder_ / "model.collage");
  ASSERT_TRUE(saved.ok()) << saved.to_string();
  const auto file = ArtifactFile::open(folder_ / "model.collage").value();
  Result<Model> again = embedded_model(*file);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->inputs()[0].dtype, GetParam());
  EXPECT_TRUE(structural_equal(again->impl().module, loaded.impl().module));
  ASSERT_TRUE(again->impl().in_halves.has_value());
  EXPECT_TRUE(structural_equal(*again->impl().in_halves, *loaded.impl().in_halves));
  const ModelReference own = model_reference(loaded, 0), same = model_reference(*again, 0);
  EXPECT_EQ(same.bound, own.bound);
  const std::vector<Tensor> inputs = synthetic_inputs(loaded.impl().module.main(), 6).value();
  const Tensor expected = interpret(own.function, inputs).value()[0];
  EXPECT_EQ(compare_tensors(interpret(same.function, inputs).value()[0], expected, {}).reason, "");
  Result<std::vector<Tensor>> outputs =
      Program::load(folder_ / "model.collage").value().make_context().value().run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
  const Difference difference = compare_tensors((*outputs)[0], expected, same.tolerance);
  EXPECT_TRUE(difference.within) << difference.reason;
  // What runs needs types alone.
  Result<Model> unread = embedded_model(*file, EmbeddedWeights::kUnread);
  ASSERT_TRUE(unread.ok()) << unread.status().to_string();
  EXPECT_FALSE(unread->impl().in_halves.has_value());
}

TEST(HalfReference, Float32ModelsAreHeldToFloat32) {
  register_all();
  const Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  const Model model = model_of(Module(make_function({x}, make_call("tanh", {x}).value())));
  EXPECT_FALSE(model.impl().in_halves.has_value());
  EXPECT_EQ(model_reference(model, 0).bound, "|a-b| <= 1e-4 s + 1e-3 |b|");
  EXPECT_EQ(model_reference(model, 0.02).bound, "|a-b| <= 0.02 s");
}

INSTANTIATE_TEST_SUITE_P(Types, Half, ::testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace collage
