#include <gtest/gtest.h>

#include "backend/targets/backends.h"
#include "ir/text_parser.h"
#include "report/report.h"

namespace collage {
namespace {

TEST(Summary, CountsWhatEndedItsWorker) {
  register_all();
  const Model model = model_of(
      parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { %x }").value());
  CostCounts counts;
  counts.invalid = 7;
  EXPECT_EQ(refused_for_failures(counts), "");
  counts.crashed = 2;
  counts.out_of_memory = 1;
  EXPECT_EQ(refused_for_failures(counts),
            "refused kernels: 2 crashed, 1 ran out of memory (collage explain says which; collage "
            "db prune refused has them tried again)");
  CompileReport report;
  report.estimates.silent = 3;
  report.light = true;
  const std::string text = summary(model, report, {});
  EXPECT_NE(text.find("\nrefused kernels: 3 gave no sign of life ("), std::string::npos) << text;
  report.estimates = {};
  EXPECT_EQ(summary(model, report, {}).find("refused"), std::string::npos);
}

TEST(Summary, SaysThatThereWasButAFirstRun) {
  register_all();
  const Model model = model_of(
      parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { %x }").value());
  CompileReport report;
  report.light = true;
  RunFacts facts;
  facts.samples = {1.5};
  facts.is_first_run = true;
  std::string text = summary(model, report, facts);
  EXPECT_NE(text.find(", first run 1500.0 ms"), std::string::npos) << text;
  facts.samples = {0.5};
  facts.is_first_run = false;
  text = summary(model, report, facts);
  EXPECT_EQ(text.find("first run"), std::string::npos) << text;
  EXPECT_NE(text.find(", measured 500.0 ms ± 0.0"), std::string::npos) << text;
}

TEST(Summary, SaysHowManyCandidatesLimitsTruncated) {
  const Model model = model_of(
      parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { %x }").value());
  CompileReport report;
  report.exact = true;
  EXPECT_NE(summary(model, report, {}).find(" (exact search), "), std::string::npos);
  report.truncated = 2;
  const std::string text = summary(model, report, {});
  EXPECT_NE(text.find(" (exact search, 2 candidates truncated), "), std::string::npos) << text;
}

}  // namespace
}  // namespace collage
