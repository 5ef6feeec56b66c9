// Costs that a library's user gives: covers are chosen by them, nothing of theirs is timed alone,
// and what they say nothing of is measured.
#include <gmock/gmock.h>

#include <set>

#include "compiler/given_model.h"

namespace collage {
namespace {

constexpr double kCheap = 1e-5, kDear = 1e-2;

// One backend's kernels are cheap, others' are dear; of a third it knows nothing.
class OneIsCheap : public CostModel {
 public:
  OneIsCheap(std::string cheap, std::string unknown)
      : cheap_(std::move(cheap)), unknown_(std::move(unknown)) {}

  std::optional<double> kernel_seconds(const Kernel& kernel) override {
    asked.insert(kernel.target);
    EXPECT_THAT(kernel.function, ::testing::HasSubstr("fn"));
    EXPECT_THAT(kernel.variant, ::testing::HasSubstr("->("));
    if (kernel.target == unknown_) return std::nullopt;
    return kernel.target == cheap_ ? kCheap : kDear;
  }
  std::optional<double> conversion_seconds(const Conversion& conversion) override {
    EXPECT_NE(conversion.from, conversion.to);
    return kCheap;
  }

  std::set<std::string> asked;

 private:
  const std::string cheap_, unknown_;
};

class GivenCostsTest : public testing::GivenModel {
 protected:
  GivenCostsTest()
      : GivenModel(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32], %w: Tensor[(32, 64), float32]) {
  %0 = nn.dense(%x, %w);
  nn.relu(%0)
}
)") {}

  CompileReport compiled(std::shared_ptr<CostModel> model) {
    options_.cost_model = std::move(model);
    Result<Program> program = compile_model(model_of(given_), options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return program ? program->impl().report : CompileReport();
  }

  static ::testing::Matcher<double> a_kernel_or_two(double seconds) {
    return ::testing::AnyOf(::testing::DoubleEq(seconds), ::testing::DoubleEq(2 * seconds));
  }

  // Of a single-backend cover's kernels.
  static double predicted(const CompileReport& report, const std::string& cover) {
    for (const ReportedPlan& plan : report.covers)
      if (plan.name == cover) {
        double seconds = 0;
        for (const ReportedPlan::Kernel& kernel : plan.kernels)
          seconds += median_seconds(kernel.cost);
        return seconds;
      }
    ADD_FAILURE() << "no cover " << cover;
    return 0;
  }
};

TEST_F(GivenCostsTest, StandInPlaceOfMeasuredOnes) {
  for (const std::string cheap : {"native", "onednn"}) {
    SCOPED_TRACE(cheap);
    const std::string dear = cheap == "native" ? "onednn" : "native";
    options_.database = folder_ / (cheap + ".db");
    auto model = std::make_shared<OneIsCheap>(cheap, "none");
    const CompileReport report = compiled(model);
    EXPECT_EQ(report.estimates.measured, 0);
    EXPECT_GT(report.estimates.tried, 0);
    EXPECT_THAT(model->asked, ::testing::IsSupersetOf({"native", "onednn"}));
    EXPECT_THAT(predicted(report, cheap), a_kernel_or_two(kCheap));
    EXPECT_THAT(predicted(report, dear), a_kernel_or_two(kDear));
    // By cost alone the cheap one wins.
    EXPECT_LE(report.lower_bound_seconds, predicted(report, cheap) + 1e-5);
  }
}

TEST_F(GivenCostsTest, LeaveTheRestToBeMeasured) {
  const CompileReport report = compiled(std::make_shared<OneIsCheap>("native", "onednn"));
  EXPECT_THAT(predicted(report, "native"), a_kernel_or_two(kCheap));
  EXPECT_GT(report.estimates.measured, 0);
}

TEST_F(GivenCostsTest, ExcludeFrozenOnes) {
  options_.cost_model = std::make_shared<OneIsCheap>("native", "none");
  options_.frozen_costs = true;
  const Result<Program> program = compile_model(model_of(given_), options_);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), ErrorCode::kUsage);
  EXPECT_THAT(program.status().message(), ::testing::HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace collage
