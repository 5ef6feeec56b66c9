// A model's pace: measured once, right after its covers were timed, and then part of what is
// predicted of every cover of it, and of no other model's.
#include "compiler/pace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "compiler/given_model.h"
#include "ir/text_printer.h"

namespace collage {
namespace {

constexpr const char* kModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(32, 64), float32]) {
  %0 = nn.softmax(%x, axis=-1);
  exp(%0)
}
)";

class PaceOfAModel : public testing::GivenModel {
 protected:
  PaceOfAModel() : GivenModel(kModel) {}

  CompileReport compile() {
    Result<Program> program = Program::compile(model_of(given_), options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return program.ok() ? program->impl().report : CompileReport();
  }
  std::vector<CostRow> rows(const std::string& kind) {
    std::vector<CostRow> found;
    EXPECT_TRUE(CostDatabase::open(options_.database)
                    ->for_each([&](const CostRow& row) {
                      if (row.kind == kind) found.push_back(row);
                      return Status();
                    })
                    .ok());
    return found;
  }
  void set_pace(const CostRow& row, const std::string& value) {
    CostDatabase::open(options_.database)->put("pace", row.key, row.text, value, row.context);
  }
};

double parts_of(const CompileReport& report) {
  double sum = 0;
  for (const ReportedKernel& kernel : report.kernels) sum += kernel.predicted_seconds;
  for (const ReportedConversion& conversion : report.conversions)
    sum += conversion.predicted_seconds;
  return sum;
}

TEST_F(PaceOfAModel, IsMeasuredOnceAndScalesWhatIsPredicted) {
  const CompileReport first = compile();
  ASSERT_EQ(rows("pace").size(), 1U);
  const CostRow row = rows("pace")[0];
  EXPECT_EQ(row.text, sha256_hex(canonical_text(given_.main())));
  const double pace = nlohmann::json::parse(row.value)["pace"];
  EXPECT_NEAR(first.predicted_seconds, pace * parts_of(first), 1e-3 * first.predicted_seconds);

  options_.frozen_costs = true;
  const CompileReport warm = compile();
  EXPECT_EQ(rows("pace")[0].value, row.value);
  EXPECT_DOUBLE_EQ(warm.predicted_seconds, first.predicted_seconds);
  EXPECT_DOUBLE_EQ(warm.predicted_seconds - warm.correction_seconds, parts_of(warm));

  set_pace(row, nlohmann::json({{"source", row.text}, {"pace", 3 * pace}}).dump());
  const CompileReport slower = compile();
  EXPECT_NEAR(slower.predicted_seconds, 3 * first.predicted_seconds,
              1e-6 * first.predicted_seconds);
  ASSERT_EQ(slower.covers.size(), warm.covers.size());
  for (size_t c = 0; c < slower.covers.size(); ++c) {
    EXPECT_NEAR(slower.covers[c].predicted_seconds, 3 * warm.covers[c].predicted_seconds,
                1e-6 * warm.covers[c].predicted_seconds);
    EXPECT_EQ(slower.covers[c].chosen, warm.covers[c].chosen) << "it chooses nothing";
  }
}

TEST_F(PaceOfAModel, OfADamagedRowIsNotKnown) {
  compile();
  const CostRow row = rows("pace").at(0);
  const std::string key = row.text;
  std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
  EXPECT_NE(pace_of(key, known_paces(*database, row.context)), 1);
  EXPECT_EQ(pace_of("another model", known_paces(*database, row.context)), 1);
  EXPECT_EQ(pace_of(key, known_paces(*database, "another machine")), 1);
  for (const char* damaged : {"", "[]", R"({"pace": 2})", R"({"source": 1, "pace": 2})"}) {
    set_pace(row, damaged);
    EXPECT_EQ(pace_of(key, known_paces(*database, row.context)), 1) << damaged;
  }
  for (const char* pace : {"-1", "0", "\"fast\"", "null"}) {
    set_pace(row, R"({"source": ")" + key + R"(", "pace": )" + pace + "}");
    EXPECT_EQ(pace_of(key, known_paces(*database, row.context)), 1) << pace;
  }
  compile();
  EXPECT_GT(pace_of(key, known_paces(*database, row.context)), 0) << "it is measured again";
  EXPECT_EQ(rows("pace").size(), 1U);
}

// Where some targets rewrite the graph and others do not, it is one model all the same.
TEST_F(PaceOfAModel, IsOneWithAllTargets) {
  compile();
  options_.targets = {"onednn"};
  options_.always_measure = true;
  compile();
  EXPECT_EQ(rows("pace").size(), 1U);
  for (const CostRow& cover : rows("cover"))
    EXPECT_EQ(nlohmann::json::parse(cover.value)["source"], rows("pace")[0].text);
}

}  // namespace
}  // namespace collage
