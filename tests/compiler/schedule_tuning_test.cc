// Schedules that are searched for while a model is compiled: who is used, what is kept, and what
// does not happen again. The backend's fast schedules take a hundredth of what it lists.
#include "choose/schedule_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fault_backend.h"
#include "compiler/given_model.h"
#include "cost/database_tools.h"
#include "ir/text_printer.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTunedModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(3, 17), float32]) {
  tanh(%x)
}
)";

class ScheduleTuning : public testing::GivenModel {
 protected:
  ScheduleTuning() : GivenModel(kTunedModel) {}
  void SetUp() override {
    GivenModel::SetUp();
    testing::register_all_and_faulty();
    options_.targets = {"faulty -fault=segv -schedules=1"};
    options_.exclude = {"reference"};
    options_.always_measure = true;
    options_.effort = Effort::kMax;
  }

  Result<Program> compile(const Module& module) {
    return Program::compile(model_of(module), options_);
  }
};

TEST_F(ScheduleTuning, FindsWhatNobodyLists) {
  Result<Program> program = compile(given_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const CompileReport& report = program->impl().report;
  ASSERT_EQ(report.kernels.size(), 1U);
  EXPECT_THAT(report.kernels[0].variant.name, StartsWith("schedule 3"));
  // Whole programs have the last word: one by what the target lists was timed too.
  const auto listed = std::find_if(
      report.covers.begin(), report.covers.end(),
      [](const ReportedPlan& cover) { return cover.name == "listed schedules" && cover.measured; });
  ASSERT_NE(listed, report.covers.end());
  EXPECT_FALSE(listed->chosen);

  // Who looks after the database knows the rows, and forgets no search that found something.
  {
    const auto database = CostDatabase::open(options_.database);
    const Result<int64_t> rows = verify_costs(*database);
    EXPECT_TRUE(rows.ok()) << rows.status().to_string();
    EXPECT_EQ(describe_database(*database)->rows.at("schedules"), 1);
    EXPECT_EQ(describe_database(*database)->stale, 0);
    PruneOptions refused;
    refused.refused = true;
    EXPECT_TRUE(prune_costs(*database, refused).ok());
    EXPECT_EQ(describe_database(*database)->rows.at("schedules"), 1);
  }

  // It is a variant like any other: with less effort, and where nothing may be measured.
  for (const Effort effort : {Effort::kFast, Effort::kMax})
    for (const bool frozen : {false, true}) {
      options_.effort = effort;
      options_.frozen_costs = frozen;
      Result<Program> again = compile(given_);
      ASSERT_TRUE(again.ok()) << again.status().to_string();
      EXPECT_EQ(again->impl().report.kernels[0].variant.name, report.kernels[0].variant.name);
    }

  // A module that states it needs no search.
  options_.database = folder_ / "empty.db";
  options_.effort = Effort::kDefault;
  options_.always_measure = false;
  options_.frozen_costs = true;
  EXPECT_THAT(to_text(report.partitioned), HasSubstr(report.kernels[0].variant.name));
  Result<Program> stated = compile(report.partitioned);
  ASSERT_TRUE(stated.ok()) << stated.status().to_string();
  EXPECT_EQ(stated->impl().report.kernels[0].variant.name, report.kernels[0].variant.name);
}

TEST_F(ScheduleTuning, NeedsTheEffort) {
  options_.effort = Effort::kDefault;
  Result<Program> program = compile(given_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  for (const ReportedPlan::Kernel& kernel : program->impl().report.kernels)
    EXPECT_THAT(kernel.variant.name, ::testing::Not(StartsWith("schedule")));
}

TEST(ScheduleBudget, IsByEffort) {
  EXPECT_EQ(most_schedules(Effort::kFast), 0U);
  EXPECT_EQ(most_schedules(Effort::kDefault), 0U);
  EXPECT_GT(most_schedules(Effort::kMax), 0U);
}

}  // namespace
}  // namespace collage
