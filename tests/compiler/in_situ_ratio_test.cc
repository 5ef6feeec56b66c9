// A model's in-situ ratio: measured once, right after its covers were timed. It is reported and is
// no part of what is predicted, which was fixed before.
#include "compiler/in_situ_ratio.h"

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

class InSituRatio : public testing::GivenModel {
 protected:
  InSituRatio() : GivenModel(kModel) {}

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
  void set_ratio(const CostRow& row, const std::string& value) {
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

TEST_F(InSituRatio, IsMeasuredOnceAndScalesNoPrediction) {
  const CompileReport first = compile();
  ASSERT_EQ(rows("pace").size(), 1U);
  const CostRow row = rows("pace")[0];
  EXPECT_EQ(row.text, sha256_hex(canonical_text(given_.main())));
  const double ratio = nlohmann::json::parse(row.value)["pace"];
  EXPECT_DOUBLE_EQ(first.in_situ_ratio, ratio);
  EXPECT_NEAR(first.isolated_seconds, parts_of(first), 1e-9);
  EXPECT_NEAR(first.in_situ_seconds, ratio * parts_of(first), 1e-3 * first.in_situ_seconds);
  EXPECT_NEAR(first.predicted_seconds - first.correction_seconds, parts_of(first), 1e-9);

  options_.frozen_costs = true;
  const CompileReport warm = compile();
  EXPECT_EQ(rows("pace")[0].value, row.value);
  EXPECT_DOUBLE_EQ(warm.predicted_seconds, first.predicted_seconds);

  set_ratio(row, nlohmann::json({{"source", row.text}, {"pace", 3 * ratio}}).dump());
  const CompileReport slower = compile();
  EXPECT_NEAR(slower.in_situ_seconds, 3 * first.in_situ_seconds, 1e-6 * first.in_situ_seconds);
  EXPECT_DOUBLE_EQ(slower.predicted_seconds, first.predicted_seconds);
  ASSERT_EQ(slower.covers.size(), warm.covers.size());
  for (size_t c = 0; c < slower.covers.size(); ++c) {
    EXPECT_DOUBLE_EQ(slower.covers[c].predicted_seconds, warm.covers[c].predicted_seconds);
    EXPECT_EQ(slower.covers[c].chosen, warm.covers[c].chosen) << "it chooses nothing";
  }
}

TEST_F(InSituRatio, OfADamagedRowIsNotKnown) {
  compile();
  const CostRow row = rows("pace").at(0);
  const std::string key = row.text;
  std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
  EXPECT_TRUE(known_in_situ_ratio(*database, key, row.context));
  EXPECT_FALSE(known_in_situ_ratio(*database, "another model", row.context));
  EXPECT_FALSE(known_in_situ_ratio(*database, key, "another machine"));
  for (const char* damaged : {"", "[]", R"({"source": 1})", R"({"source": 1, "pace": []})"}) {
    set_ratio(row, damaged);
    EXPECT_FALSE(known_in_situ_ratio(*database, key, row.context)) << damaged;
  }
  for (const char* ratio : {"-1", "0", "\"fast\"", "null"}) {
    set_ratio(row, R"({"source": ")" + key + R"(", "pace": )" + ratio + "}");
    EXPECT_FALSE(known_in_situ_ratio(*database, key, row.context)) << ratio;
  }
  compile();
  EXPECT_TRUE(known_in_situ_ratio(*database, key, row.context)) << "it is measured again";
  EXPECT_EQ(rows("pace").size(), 1U);
}

// Where some targets rewrite the graph and others do not, it is one model all the same.
TEST_F(InSituRatio, IsOneWithAllTargets) {
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
