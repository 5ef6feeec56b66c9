// The public view of a report: text of a compiled program, and what people read of it.
#include <collage/report.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/targets/backends.h"
#include "compiler/compile.h"
#include "ir/text_parser.h"
#include "report/read_report.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8), float32]) { nn.relu(%x) }
)";

Result<std::string> text_of_program(const RunRecord& record) {
  register_all();
  Result<Module> module = parse_module(kModel);
  if (!module.ok()) return module.status();
  const Model model = model_of(*module);
  ProgramOptions options;
  options.targets = {"reference"};  // alone: nothing has to be measured
  options.database = ::testing::TempDir() + "report_text_costs.db";
  options.worker = "/proc/self/exe";  // so it is never started
  Result<Program> program = Program::compile(model, options);
  if (!program.ok()) return program.status();
  return report_text(model, *program, record);
}

TEST(ReportText, HoldsWhatTheCallerKnowsAndPassesTheSchema) {
  const Result<std::string> text = text_of_program({3, 0.25, {0.002, 0.001, 0.003}});
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  const Result<nlohmann::json> report = parse_report(*text, "report");
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ((*report)["env"]["threads"], 3);
  EXPECT_EQ((*report)["compile_s"], 0.25);
  EXPECT_EQ((*report)["latency_ms"]["median"], 2);
  EXPECT_EQ((*report)["kernels"][0]["target"], "reference");
}

TEST(ReportText, IsExplainedAndShown) {
  const Result<std::string> text = text_of_program({});
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  const std::string kernel = nlohmann::json::parse(*text)["kernels"][0]["name"].get<std::string>();
  EXPECT_THAT(explain_report(*text).value(), HasSubstr(kernel));
  EXPECT_THAT(explain_report(*text, kernel).value(), HasSubstr("nn.relu"));
  EXPECT_THAT(report_page(*text).value(), StartsWith("<!doctype html>"));
}

TEST(ReportText, OfNothingOrOfUnknownKernelsIsRefused) {
  EXPECT_EQ(explain_report("{").status().code(), ErrorCode::kBadModel);
  EXPECT_EQ(report_page("[]").status().code(), ErrorCode::kBadModel);
  const Result<std::string> text = text_of_program({});
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  EXPECT_EQ(explain_report(*text, "nobody").status().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace collage
