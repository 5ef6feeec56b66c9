// JSON reports as `collage diff`, `explain` and `view` read them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fuzz/files/measured.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_json.h"
#include "measure/task.h"
#include "report/diff.h"
#include "report/explain.h"
#include "report/html_page.h"
#include "report/read_report.h"
#include "report/sample_report.h"

namespace collage::fuzz {
namespace {

using nlohmann::json;

// A small one, and one of everything that a run reports.
const std::vector<json>& report_seeds() {
  static const std::vector<json> reports = {collage::testing::sample_report(), measured().report};
  return reports;
}

Outcome run_report(const std::string& input) {
  static const std::filesystem::path file = std::filesystem::path(scratch_folder()) / "report.json";
  std::ofstream(file, std::ios::binary) << input;
  const Result<json> read = read_report(file);
  if (!read.ok()) {
    EXPECT_EQ(read.status().code(), ErrorCode::kBadModel) << read.status().to_string();
    return parse_json(input).is_null() ? Outcome::kNoSyntax : Outcome::kRefused;
  }
  const json& report = *read;
  for (const json& other : report_seeds()) {
    for (const auto& compared : {diff_reports(report, other), diff_reports(other, report)})
      if (compared.ok()) {
        EXPECT_FALSE(to_text(*compared).empty());
      }
  }
  EXPECT_FALSE(html_page(report).empty());
  EXPECT_FALSE(explain_plan(report).empty());
  for (const json& kernel : report["kernels"]) {
    (void)explain_kernel(report, kernel);
    for (const json& op : kernel["ops"])
      (void)explain_why_not(report, "native", op.value("index", json(0)).dump());
  }
  (void)find_kernel(report, "k0");
  (void)find_kernel(report, "18446744073709551616");
  (void)explain_why_not(report, "no target", "conv1");
  return Outcome::kAccepted;
}

}  // namespace

FuzzTarget reports() {
  std::vector<std::string> texts;
  for (const json& report : report_seeds()) texts.push_back(report.dump());
  return {"reports", texts,
          [](Random& random) { return changed_json(random.pick(report_seeds()), random); },
          run_report};
}

}  // namespace collage::fuzz
