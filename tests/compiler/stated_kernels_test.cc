// A compiled program as a module that states its kernels: printed, read and compiled again, it is
// the same plan, without a search and without a measurement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "collage/collage.h"
#include "compiler/given_model.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "passes/verify.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kStatedModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 12, 12), float32], %w: Tensor[(16, 8, 3, 3), float32],
          %v: Tensor[(8, 16, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.relu(%0);
  %2 = nn.conv2d(%1, %v, channels=8, kernel_size=[1, 1]);
  %3 = tanh(%2);
  (add(%3, %x), reshape(nn.softmax(%3), newshape=[8, 144]))
}
)";

class StatedKernelsTest : public testing::GivenModel {
 protected:
  StatedKernelsTest() : GivenModel(kStatedModel) {}

  Result<Program> compile(const Module& module) {
    return Program::compile(model_of(module), options_);
  }
  static Module parsed(const std::string& text) {
    Result<Module> module = parse_module(text);
    EXPECT_TRUE(module.ok()) << module.status().to_string();
    return module.ok() ? *module : Module();
  }
};

TEST_F(StatedKernelsTest, CompileAgainToTheSamePlan) {
  for (const std::vector<std::string>& targets :
       {std::vector<std::string>{"native", "onednn"}, {"onednn"}, {"native", "reference"}}) {
    options_.targets = targets;
    Result<Program> program = compile(given_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const std::string text = to_text(program->impl().report.partitioned);
    const Module read = parsed(text);
    EXPECT_TRUE(structural_equal(read, program->impl().report.partitioned)) << text;
    EXPECT_TRUE(verify(read).ok());
    EXPECT_EQ(to_text(read), text);

    // Nothing is known of its costs, and nothing is asked for.
    options_.database = folder_ / "empty.db";
    options_.frozen_costs = true;
    Result<Program> again = compile(read);
    ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << text;
    options_.database = folder_ / "costs.db";
    options_.frozen_costs = false;
    EXPECT_TRUE(again->impl().report.light);
    EXPECT_EQ(described(*again->impl().plan), described(*program->impl().plan)) << text;
    EXPECT_EQ(to_text(again->impl().report.partitioned), text);

    const std::vector<Tensor> inputs = synthetic_inputs(given_.main(), 1).value();
    const std::vector<Tensor> expected = program->run(inputs).value(),
                              given = again->run(inputs).value();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(std::memcmp(expected[i].raw(), given[i].raw(), expected[i].bytes()), 0) << i;
  }
}

// What is stated of some kernels holds, and the others are chosen.
TEST_F(StatedKernelsTest, APartOfThemMayBeStated) {
  const auto with = [](const std::string& stated) {
    return parsed(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32]) {
  %0 = fn (%p: Tensor[(4, 8), float32], Primitive=1)" +
                  stated + R"() { exp(tanh(%p)) };
  nn.softmax(%0(%x))
}
)");
  };
  const auto target_of = [&](const std::string& stated) -> std::string {
    Result<Program> program = compile(with(stated));
    if (!program) return program.status().to_string();
    for (const ReportedPlan::Kernel& kernel : program->impl().report.kernels)
      if (kernel.name.find("softmax") == std::string::npos) return kernel.target;
    return "none";
  };
  EXPECT_EQ(target_of(", Target=\"native\""), "native");
  EXPECT_EQ(target_of(", Target=\"onednn\""), "onednn");
  EXPECT_EQ(target_of(", Target=\"reference\""), "reference");
  EXPECT_THAT(target_of(", Target=\"native\", Variant=\"none such\""), HasSubstr("no kernel"));
  EXPECT_THAT(target_of(", Target=\"openvino\""), HasSubstr("no kernel"));
}

// What no toolchain takes whole is not the host's: each of its operators is a toolchain's.
TEST_F(StatedKernelsTest, AFunctionThatNoToolchainTakesWholeIsTakenApart) {
  const auto with = [](const std::string& stated) {
    return parsed(R"(#[version = "0.0.5"]
def @pair(%p: Tensor[(8, 8), float32], Primitive=1)" +
                  stated + R"() -> Tensor[(8, 8), float32] {
  nn.matmul(nn.softmax(nn.matmul(%p, %p)), %p)
}
def @main(%x: Tensor[(8, 8), float32]) {
  tanh(@pair(@pair(%x)))
}
)");
  };
  options_.targets = {"native"};
  const auto targets_of = [&](const Module& module) -> std::map<std::string, int> {
    Result<Program> program = compile(module);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    std::map<std::string, int> targets;
    if (program)
      for (const ReportedPlan::Kernel& kernel : program->impl().report.kernels)
        ++targets[kernel.target];
    return targets;
  };
  ::testing::internal::CaptureStderr();
  const std::map<std::string, int> apart = targets_of(with(""));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("no toolchain takes @pair as one kernel"));
  EXPECT_EQ(apart.count("reference"), 0u);
  EXPECT_GE(apart.at("native"), 5);
  const std::map<std::string, int> stated = targets_of(with(", Target=\"reference\""));
  EXPECT_EQ(stated.at("reference"), 2);
  options_.targets = {"reference"};
  EXPECT_EQ(targets_of(with("")).at("reference"), 3);
}

// A module may state what --exclude and --pin ask for.
TEST_F(StatedKernelsTest, TargetsAreKeptAwayAsByFlags) {
  options_.targets = {"native"};
  const auto partitioned = [&](const std::string& stated) -> std::string {
    Result<Program> program = compile(parsed(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32])" + stated +
                                             ") {\n  nn.softmax(exp(%x))\n}\n"));
    return program ? to_text(program->impl().report.partitioned) : program.status().to_string();
  };
  const std::string by_attribute = partitioned(", exclude=\"native for nn.softmax\"");
  EXPECT_THAT(by_attribute, HasSubstr("Target=\"reference\""));
  EXPECT_THAT(by_attribute, HasSubstr("Target=\"native\""));
  const std::string pinned = partitioned(", pin=\"reference for .*\"");
  EXPECT_THAT(pinned, Not(HasSubstr("Target=\"native\"")));
  EXPECT_THAT(partitioned(", pin=\"reference for (\""), HasSubstr("attribute pin"));
  options_.exclude = {"native:nn.softmax"};
  EXPECT_EQ(partitioned(""), by_attribute);
  options_.exclude = {};
  options_.pin = {".*=reference"};
  EXPECT_EQ(partitioned(""), pinned);
}

}  // namespace
}  // namespace collage
