// Targets that may not meet are in no cover together, whoever finds it.
#include <gmock/gmock.h>

#include <fstream>

#include "compiler/given_model.h"

namespace collage {
namespace {

class Apart : public testing::GivenModel {
 protected:
  explicit Apart(const char* text = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32], %w: Tensor[(32, 64), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = nn.relu(%0);
  %2 = floor(%1);
  nn.softmax(%2)
}
)")
      : GivenModel(text) {}

  // With onednn and native, which are declared to be apart.
  CompileReport compiled() {
    std::ofstream(folder_ / "apart.json")
        << R"({"targets": [{"name": "onednn"}, {"name": "native"}],
      "incompatible": [["native", "onednn"]]})";
    options_.targets.clear();
    options_.config = folder_ / "apart.json";
    Result<Program> program = compile_model(model_of(given_), options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return program ? program->impl().report : CompileReport();
  }
  static std::set<std::string> targets_of(const std::vector<ReportedPlan::Kernel>& kernels) {
    std::set<std::string> targets;
    for (const ReportedPlan::Kernel& kernel : kernels) targets.insert(kernel.target);
    return targets;
  }
  static void expect_apart(const CompileReport& report) {
    EXPECT_FALSE(report.covers.empty());
    std::set<std::string> all;
    for (const ReportedPlan& cover : report.covers) {
      const std::set<std::string> used = targets_of(cover.kernels);
      EXPECT_FALSE(used.contains("onednn") && used.contains("native")) << cover.name;
      all.insert(used.begin(), used.end());
    }
    EXPECT_THAT(all, ::testing::IsSupersetOf({"onednn", "native"})) << "each has covers";
  }
};

TEST_F(Apart, AreTargetsInFirstAnswers) {
  options_.budget_seconds = 0;
  const CompileReport report = compiled();
  EXPECT_TRUE(report.light);
  expect_apart(report);
}

TEST_F(Apart, AreTargetsInSearches) { expect_apart(compiled()); }

class ApartAndStated : public Apart {
 protected:
  ApartAndStated()
      : Apart(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) {
  %0 = fn (%p: Tensor[(4, 64), float32], Primitive=1, Target="native") {
    nn.relu(%p)
  };
  %1 = %0(%x);
  nn.softmax(%1)
}
)") {}
};

TEST_F(ApartAndStated, IsWhatTheOthersCannotDo) {
  const CompileReport report = compiled();
  EXPECT_THAT(targets_of(report.kernels), ::testing::Contains("native"));
  EXPECT_THAT(targets_of(report.kernels), ::testing::Not(::testing::Contains("onednn")));
}

}  // namespace
}  // namespace collage
