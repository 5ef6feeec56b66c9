// First answers by shipped costs: what they say decides, nothing is measured, and nothing wrong
// gets through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json_fields.h"
#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "cost/cost_keys.h"
#include "cost/row_values.h"
#include "cost/rows_of_kind.h"
#include "cost/shipped_costs.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class Estimated : public testing::CompileTest {
 protected:
  Estimated() {
    options_.budget_seconds = 0;
    options_.targets = {"onednn", "openvino"};
    std::ofstream(folder_ / "model.relay")
        << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(128, 96), float32]) {\n"
           "  tanh(nn.dense(%x, %x))\n}\n";
  }
  ~Estimated() override { ::unsetenv("COLLAGE_COSTS"); }

  // Each compilation with a database of its own, and with a shipped file of these lines.
  CompileReport compiled(const std::string& lines) {
    static int number = 0;
    const fs::path costs = folder_ / std::to_string(number++);
    fs::create_directories(costs);
    std::string text = nlohmann::json{{"collage_costs", 1},
                                      {"processor", processor_name()},
                                      {"threads", 1},
                                      {"versions",
                                       {{"onednn", library_version("onednn")},
                                        {"openvino", library_version("openvino")},
                                        {"faulty", library_version("faulty")}}},
                                      {"speed", {{"float32", 1e11}, {"memory", 1e10}}}}
                           .dump() +
                       "\n" + lines;
    text += fmt::format("end {}\n", std::count(text.begin(), text.end(), '\n'));
    if (!lines.empty()) std::ofstream(costs / "some.costs") << text;
    ::setenv("COLLAGE_COSTS", costs.c_str(), 1);
    options_.database = costs / "costs.db";
    const Result<Model> model = Model::load(folder_ / "model.relay");
    Result<Program> program = Program::compile(*model, options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return program ? program->impl().report : CompileReport();
  }
  static std::string estimate(const std::string& target, double microseconds) {
    return fmt::format("estimate [\"{}\",\"\",\"\",{},0,0,0]\n", target, microseconds);
  }
  // Of every function that was tried in a compilation: what it takes on a target.
  std::string rows_of(const std::string& target, double microseconds) {
    std::string variants, rows;
    size_t number = 0;
    for (const CostRow& row : testing::rows_of_kind(options_.database, "trial")) {
      const nlohmann::json value = parse_json(row.value);
      if (!is_of_function(row, value)) continue;
      const TargetCosts costs = target_costs_from_json(value).value();
      if (costs.target != target) continue;
      variants += "variant " + json_text(to_json(costs.variants.at(0).variant)) + "\n";
      const std::string id = shipped::kernel_id(row.text, target);
      rows += fmt::format("kernel {} {}:{}\n", shipped::key_of(id, CacheState::kWarm), number++,
                          microseconds);
    }
    EXPECT_GT(number, 0u) << target;
    return variants + rows;
  }
  static std::string targets_of(const CompileReport& report) {
    std::string text;
    for (const ReportedPlan::Kernel& kernel : report.kernels) text += kernel.target + " ";
    return text;
  }
};

TEST_F(Estimated, RowsOfThisProcessorDecideAlone) {
  compiled("");
  for (const char* fast : {"onednn", "openvino"}) {
    const std::string slow = fast == std::string("onednn") ? "openvino" : "onednn";
    compiled("");
    const std::string rows = rows_of(fast, 1);
    const CompileReport report = compiled(estimate(fast, 900) + estimate(slow, 1000) + rows);
    ASSERT_EQ(report.covers.size(), 1u);
    EXPECT_EQ(report.covers[0].name, "by estimates");
    EXPECT_EQ(targets_of(report), std::string(fast) + " ");
    EXPECT_EQ(report.estimates.measured, 0);
    EXPECT_GT(report.estimates.tried, 0) << "it is tried here all the same";
  }
}

TEST_F(Estimated, ByEstimatesACoverTakesPartInTheRace) {
  const CompileReport none = compiled("");
  EXPECT_EQ(none.covers.size(), 2u) << "without costs there is none";
  // Alone, the activation takes longer on both.
  const CompileReport report = compiled(estimate("onednn", 5) + estimate("openvino", 100));
  ASSERT_EQ(report.covers.size(), 2u) << "that of one toolchain is the same";
  EXPECT_EQ(report.covers[0].name, "by estimates");
  EXPECT_EQ(report.covers[1].origin, "first answer");
  EXPECT_EQ(report.covers[1].name, "openvino first");
  for (const ReportedPlan& cover : report.covers) EXPECT_TRUE(cover.measured.has_value());
  EXPECT_EQ(report.estimates.measured, 0);
}

TEST_F(Estimated, TheHostDoesNotTakeWhatOthersDo) {
  const CompileReport report = compiled(estimate("reference", 0.001) + estimate("onednn", 5));
  EXPECT_EQ(report.covers.at(0).name, "by estimates");
  EXPECT_EQ(targets_of(report).find("reference"), std::string::npos) << targets_of(report);
}

// The variant that is expected to be as fast as any is wrong: the next takes its place.
TEST_F(Estimated, WhatFailsItsTrialIsInNoCover) {
  const std::string faulty = "faulty -fault=wrong_by_a_tenth";
  options_.targets = {"memory", faulty};
  const CompileReport report = compiled(estimate(faulty, 1));
  ASSERT_EQ(report.covers.size(), 1u) << "the other one is the same";
  EXPECT_EQ(report.covers[0].name, "by estimates");
  EXPECT_THAT(targets_of(report), ::testing::HasSubstr(faulty));
  for (const ReportedPlan::Kernel& kernel : report.kernels) {
    if (kernel.target == faulty) {
      EXPECT_EQ(kernel.variant.name, "good");
    }
  }
}

}  // namespace
}  // namespace collage
