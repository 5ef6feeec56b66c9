// Views of reports that passed the schema, which says nothing of what their parts refer to.
#include "report/html_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/explain.h"
#include "report/sample_report.h"

namespace collage {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json node(size_t index, const char* op, const std::vector<size_t>& inputs) {
  json tensor = {{"shape", {1, 8}}, {"dtype", "float32"}};
  return {{"index", index},      {"op", op},         {"onnx_node", ""}, {"inputs", inputs},
          {"outputs", {tensor}}, {"is_result", true}};
}

TEST(HtmlPage, DrawsProjectionsThatLeadNowhere) {
  json report = testing::sample_report();
  report["conversions"] = {{{"name", "c"},
                            {"node", 77},
                            {"leaf", 0},
                            {"shape", {1, 8}},
                            {"from", "float32:aBcd16b"},
                            {"to", "float32"},
                            {"cost_ms", nullptr},
                            {"predicted_ms", 0}}};
  for (const std::vector<size_t>& inputs : {std::vector<size_t>{99}, {0}, {1}}) {
    report["nodes"] = {node(0, "item", inputs), node(1, "item", {0})};
    EXPECT_THAT(html_page(report), HasSubstr("tiny.onnx"));
  }
}

TEST(Explain, LeavesOutFlagsThatWereNotPredicted) {
  json report = testing::sample_report();
  report["what_if"] = {{{"flag", "--exclude 'a'"}}, {{"flag", "--exclude 'b'"}, {"failure", "no"}}};
  const std::string text = explain_plan(report);
  EXPECT_THAT(text, HasSubstr("--exclude 'b'"));
  EXPECT_THAT(text, Not(HasSubstr("--exclude 'a'")));
}

TEST(Explain, SaysAmongWhichCandidatesThePlanIsTheCheapest) {
  json report = testing::sample_report();
  EXPECT_THAT(explain_plan(report), HasSubstr("proven cheapest by these costs\n"));
  report["search"]["truncated"] = 2;
  EXPECT_THAT(explain_plan(report), HasSubstr("proven cheapest by these costs among the 3 "
                                              "candidates found, 2 of which limits cut short\n"));
}

}  // namespace
}  // namespace collage
