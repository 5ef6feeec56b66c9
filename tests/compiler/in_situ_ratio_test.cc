// A model's in-situ ratio: measured once, right after its covers were timed. It is reported and is
// no part of what is predicted, which was fixed before.
#include "choose/in_situ_ratio.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "compiler/given_model.h"
#include "cost/rows_of_kind.h"
#include "ir/text_printer.h"

namespace collage {
namespace {

constexpr const char* kInSituModel = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(32, 64), float32]) {
  %0 = nn.softmax(%x, axis=-1);
  exp(%0)
}
)";

class InSituRatio : public testing::GivenModel {
 protected:
  explicit InSituRatio(const char* model = kInSituModel) : GivenModel(model) {}

  CompileReport compile() {
    Result<Program> program = Program::compile(model_of(given_), options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    return program.ok() ? program->impl().report : CompileReport();
  }
  std::vector<CostRow> rows(const std::string& kind) {
    return testing::rows_of_kind(options_.database, kind);
  }
  void set_ratio(const CostRow& row, const std::string& value) {
    CostDatabase::open(options_.database)->put("in_situ", row.key, row.text, value, row.context);
  }
};

double parts_of(const CompileReport& report) {
  double sum = 0;
  for (const ReportedPlan::Kernel& kernel : report.kernels) sum += kernel.predicted_seconds;
  for (const ReportedConversion& conversion : report.conversions)
    sum += conversion.predicted_seconds;
  return sum;
}

TEST_F(InSituRatio, IsMeasuredOnceAndScalesNoPrediction) {
  const CompileReport first = compile();
  ASSERT_EQ(rows("in_situ").size(), 1U);
  const CostRow row = rows("in_situ")[0];
  EXPECT_EQ(row.text, sha256_hex(canonical_text(given_.main())));
  const double ratio = nlohmann::json::parse(row.value)["ratio"];
  EXPECT_DOUBLE_EQ(first.in_situ_ratio, ratio);
  EXPECT_NEAR(first.isolated_seconds, parts_of(first), 1e-9);
  EXPECT_NEAR(first.in_situ_seconds, ratio * parts_of(first), 1e-3 * first.in_situ_seconds);
  EXPECT_NEAR(first.predicted_seconds - first.correction_seconds, parts_of(first), 1e-9);

  options_.frozen_costs = true;
  const CompileReport warm = compile();
  EXPECT_EQ(rows("in_situ")[0].value, row.value);
  EXPECT_DOUBLE_EQ(warm.predicted_seconds, first.predicted_seconds);

  set_ratio(row, nlohmann::json({{"source", row.text}, {"ratio", 3 * ratio}}).dump());
  const CompileReport slower = compile();
  EXPECT_NEAR(slower.in_situ_seconds, 3 * first.in_situ_seconds, 1e-6 * first.in_situ_seconds);
  EXPECT_DOUBLE_EQ(slower.predicted_seconds, first.predicted_seconds);
  ASSERT_EQ(slower.covers.size(), warm.covers.size());
  for (size_t c = 0; c < slower.covers.size(); ++c) {
    EXPECT_DOUBLE_EQ(slower.covers[c].predicted_seconds, warm.covers[c].predicted_seconds);
    EXPECT_EQ(slower.covers[c].chosen, warm.covers[c].chosen) << "it chooses nothing";
  }
}

// One kernel, so that whatever it costs the covers are the same.
class OneKernel : public InSituRatio {
 protected:
  OneKernel()
      : InSituRatio(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(256, 256), float32]) {
  exp(%x)
}
)") {}
};

// Costs that are measured again, once the cover ran, correct the sum and not what was predicted.
TEST_F(OneKernel, WhatWasPredictedStaysAsItWasBeforeTheFirstRun) {
  options_.targets = {"onednn"};
  options_.always_measure = true;
  const CompileReport first = compile();
  std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
  for (const CostRow& row : rows("function")) {
    nlohmann::json value = nlohmann::json::parse(row.value);
    for (nlohmann::json& variant : value["variants"])
      for (const char* figure : {"median", "p10", "p90"})
        if (variant["cost"].contains(figure))
          variant["cost"][figure] = 2 * variant["cost"][figure].get<double>();
    database->put("function", row.key, row.text, value.dump(), row.context);
  }
  options_.frozen_costs = true;
  const CompileReport again = compile();
  ASSERT_FALSE(again.covers.empty());
  EXPECT_GT(again.isolated_seconds, 1.5 * first.isolated_seconds);
  EXPECT_DOUBLE_EQ(again.predicted_seconds, first.predicted_seconds);
  const CoverPrediction now = predict_seconds(model_of(given_), options_).value();
  EXPECT_GT(now.now, 1.5 * again.covers[0].predicted_seconds);
  EXPECT_DOUBLE_EQ(now.predicted, again.covers[0].predicted_seconds);
  EXPECT_DOUBLE_EQ(again.correction_seconds, again.predicted_seconds - again.isolated_seconds);
}

// As of a kernel that something else kept waiting.
TEST_F(OneKernel, ARatioBeyondReasonIsNotKept) {
  Program program = Program::compile(model_of(given_), options_).value();
  const std::vector<Tensor> inputs = {Tensor::zeros(DType::kFloat32, {256, 256})};
  std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
  NoiseGate gate;
  const auto measure = [&](double isolated, const char* model) {
    NamedCover cover;
    cover.plain_seconds = isolated;
    return measure_in_situ_ratio(cover, *program.impl().executor, inputs, {model, "machine"},
                                 *database, gate);
  };
  EXPECT_TRUE(measure(1e-15, "fast").ok());
  EXPECT_TRUE(measure(1e-5, "usual").ok());
  const std::string value =
      database->find("in_situ", CostDatabase::key_of("fast", "machine")).value_or("none");
  EXPECT_EQ(value, "none");
  EXPECT_TRUE(known_in_situ_ratio(*database, "usual", "machine"));
}

TEST_F(InSituRatio, OfADamagedRowIsNotKnown) {
  compile();
  const CostRow row = rows("in_situ").at(0);
  const std::string key = row.text;
  std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
  EXPECT_TRUE(known_in_situ_ratio(*database, key, row.context));
  EXPECT_FALSE(known_in_situ_ratio(*database, "another model", row.context));
  EXPECT_FALSE(known_in_situ_ratio(*database, key, "another machine"));
  for (const char* damaged : {"", "[]", R"({"source": 1})", R"({"source": 1, "in_situ": []})"}) {
    set_ratio(row, damaged);
    EXPECT_FALSE(known_in_situ_ratio(*database, key, row.context)) << damaged;
  }
  for (const char* ratio : {"-1", "0", "\"fast\"", "null"}) {
    set_ratio(row, R"({"source": ")" + key + R"(", "in_situ": )" + ratio + "}");
    EXPECT_FALSE(known_in_situ_ratio(*database, key, row.context)) << ratio;
  }
  compile();
  EXPECT_TRUE(known_in_situ_ratio(*database, key, row.context)) << "it is measured again";
  EXPECT_EQ(rows("in_situ").size(), 1U);
}

// Where some targets rewrite the graph and others do not, it is one model all the same.
TEST_F(InSituRatio, IsOneWithAllTargets) {
  compile();
  options_.targets = {"onednn"};
  options_.always_measure = true;
  compile();
  EXPECT_EQ(rows("in_situ").size(), 1U);
  for (const CostRow& cover : rows("cover"))
    EXPECT_EQ(nlohmann::json::parse(cover.value)["source"], rows("in_situ")[0].text);
}

}  // namespace
}  // namespace collage
