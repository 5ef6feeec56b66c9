// Values of the cost database's rows: what is written is read again, and whatever else stands in a
// row is refused, not thrown at anybody.
#include "cost/row_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <sstream>

#include "cost/database_tools.h"
#include "measure/planted_kernel.h"

namespace collage {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A row of each kind, as this program writes it.
std::vector<CostRow> sound_rows() {
  testing::register_host();
  const Measured time{1e-3, 0.9e-3, 1.2e-3, 40};
  TargetCosts costs;
  costs.target = "reference";
  Encoding encoding;
  encoding.layout = Layout::channels_last(4);
  costs.variants.push_back({{"one", {encoding}, {encoding}}, time, true, true, 0.01});
  costs.variants.push_back(
      {{"two", {encoding}, {}, "", rounding::kBFloat16}, Invalid{"died", WorkerFailure::kTimeout}});
  costs.conditions.other_load = 0.1;
  TimingRow cover{"model", 2e-3, 3, 2.1e-3, time};
  const CheckRow check{.error = 1e-3,
                       .failure = "",
                       .silent = {{"y", "all zero"}},
                       .culprits = {"native kernel"},
                       .all_ranges = true};
  std::vector<CostRow> rows = {
      {"function", "", "f", "reference\nversion\nmachine", json_text(to_json(costs)), "", ""},
      {"trial", "", "f", "reference\nversion\nmachine", json_text(to_json(costs)), "", ""},
      {"trial", "", "c", "machine", json_text(to_json(ConversionRow{"reference", Unknown{}})), "",
       ""},
      {"conversion", "", "c", "machine", json_text(to_json(ConversionRow{"reference", time})), "",
       ""},
      {"quarantine", "", "f", "reference\nversion\nmachine",
       json_text(to_json(Quarantine{{"reference|one", {"killed", WorkerFailure::kCrash}}})), "",
       ""},
      {"machine", "", "contention", "machine", json_text(to_json(kCoreFacts[0], 1.1)), "", ""},
      {"cover", "", "model\nkernels", "machine", json_text(to_json(cover)), "", ""},
      {"in_situ", "", "model", "machine", json_text(to_json(InSituRow{"model", 1.1})), "", ""},
      {"budgets", "", "model", "machine",
       json_text(to_json(BudgetList{{1e-3, {{"function", 2.0}}}})), "", ""},
      {"check", "", "model\nkernels\nconstants", "machine", json_text(to_json(check)), "", ""},
  };
  for (CostRow& row : rows) row.key = CostDatabase::key_of(row.text, row.context);
  for (CostRow& row : rows) row.written = "2026-01-31 12:00:00";
  return rows;
}

// Every value with one of its parts replaced by something else.
void for_each_damage(const json& value, const std::function<void(const json&)>& visit) {
  const json others[] = {nullptr,        -1,
                         1e300,          -0.5,
                         "text",         json::array(),
                         json::object(), std::numeric_limits<uint64_t>::max(),
                         true,           json::array({json::array()})};
  const json flat = value.flatten();
  std::set<std::string> paths = {""};
  for (const auto& [path, leaf] : flat.items())
    for (size_t end = path.find('/', 1); !path.empty(); end = path.find('/', end + 1)) {
      paths.insert(path.substr(0, end));
      if (end == std::string::npos) break;
    }
  for (const std::string& path : paths)
    for (const json& other : others) {
      json damaged = value;
      damaged[json::json_pointer(path)] = other;
      visit(damaged);
    }
}

TEST(RowValues, AreReadAsTheyWereWritten) {
  for (const CostRow& row : sound_rows())
    EXPECT_TRUE(check_row_value(row).ok()) << row.kind << check_row_value(row).to_string();
  const json cover = parse_json(sound_rows()[6].value);
  const TimingRow read = cover_row_from_json(cover).value();
  EXPECT_EQ(read.source, "model");
  EXPECT_EQ(read.kernel_seconds, 2e-3);
  EXPECT_EQ(read.switches, 3u);
  EXPECT_EQ(read.measured.samples, 40);
  EXPECT_EQ(read.predicted, 2.1e-3);
  const BudgetList budgets = budget_list_from_json(parse_json(sound_rows()[8].value)).value();
  EXPECT_EQ(budgets[0].amplifications.at("function"), 2);
  EXPECT_EQ(budgets[0].error, 1e-3);
  const TargetCosts costs = target_costs_from_json(parse_json(sound_rows()[0].value)).value();
  EXPECT_EQ(std::get<Invalid>(costs.variants[1].cost).failure, WorkerFailure::kTimeout);
  const CheckRow check = check_row_from_json(parse_json(sound_rows()[9].value)).value();
  EXPECT_EQ(check.error, 1e-3);
  EXPECT_EQ(check.silent.at("y"), "all zero");
  EXPECT_EQ(check.culprits, std::vector<std::string>{"native kernel"});
  EXPECT_TRUE(check.all_ranges);
  // As builds wrote it that did not tell deaths apart.
  EXPECT_EQ(quarantine_from_json({{"a|b", "killed"}}).value()["a|b"].failure,
            WorkerFailure::kCrash);
}

TEST(RowValues, NeverThrowWhateverStandsInThem) {
  for (CostRow row : sound_rows()) {
    SCOPED_TRACE(row.kind);
    const std::string sound = row.value;
    for (size_t length = 0; length < sound.size(); ++length) {
      row.value = sound.substr(0, length);
      EXPECT_FALSE(check_row_value(row).ok()) << row.value;
    }
    int refused = 0;
    for_each_damage(parse_json(sound), [&](const json& damaged) {
      row.value = json_text(damaged);
      EXPECT_NO_THROW(refused += !check_row_value(row).ok()) << row.value;
    });
    EXPECT_GT(refused, 8);
  }
}

TEST(RowValues, AreRefusedWhereTheyMakeNoSense) {
  struct Damage {
    size_t row;
    const char *path, *value, *words;
  };
  const Damage damages[] = {
      {0, "/variants/0/cost/median", "-1e-3", "'median'"},
      {0, "/variants/0/cost/median", "2e-3", "is not between"},
      {0, "/variants/0/cost/samples", "0", "'samples'"},
      {0, "/variants/0/cost/samples", "1e300", "'samples'"},
      {0, "/variants/0/variant/inputs/0/layout", "\"ab16z\"", "layout"},
      {0, "/variants/0/variant/inputs/0/dtype", "\"float\"", "dtype"},
      {0, "/target", "\"native\"", "its key of 'reference'"},
      {0, "/effort", "\"little\"", "effort"},
      {2, "/backend", "7", "'backend'"},
      {3, "/cost/p90", "1e300", "'p90'"},
      {5, "/contention", "-1", "'contention'"},
      {6, "/cost/median", "0", "between"},
      {6, "/parts/seconds", "null", "'seconds'"},
      {6, "/parts/switches", "-3", "'switches'"},
      {9, "/failure", "5", "'failure'"},
      {9, "/error", "null", "'error'"},
      {9, "/silent/y", "5", "'silent'"},
      {9, "/culprits/0", "5", "'culprits'"},
      {7, "/ratio", "0", "'ratio'"},
      {7, "/source", "\"another\"", "'source'"},
      {8, "/budgets/0/amplifications/function", "\"much\"", "'function'"},
      {8, "/budgets/0/error", "-1", "'error'"},
  };
  for (const Damage& damage : damages) {
    CostRow row = sound_rows()[damage.row];
    json value = parse_json(row.value);
    value[json::json_pointer(damage.path)] = parse_json(damage.value);
    row.value = json_text(value);
    EXPECT_THAT(check_row_value(row).message(), HasSubstr(damage.words)) << row.kind << row.value;

    // `db verify` finds it, and `db import` refuses it with all that came before it.
    std::unique_ptr<CostDatabase> source = CostDatabase::open(":memory:"),
                                  target = CostDatabase::open(":memory:");
    ASSERT_TRUE(source->insert(sound_rows()[4]).ok());
    ASSERT_TRUE(source->insert(row).ok());
    EXPECT_EQ(verify_costs(*source).status().code(), ErrorCode::kVerification) << row.value;
    std::stringstream text;
    ASSERT_TRUE(export_costs(*source, text).ok());
    EXPECT_EQ(import_costs(*target, text).status().code(), ErrorCode::kBadModel) << row.value;
    EXPECT_EQ(verify_costs(*target).value(), 0);
  }
}

TEST(RowValues, ALineOfBracketsIsRefused) {
  std::unique_ptr<CostDatabase> database = CostDatabase::open(":memory:");
  const size_t deep = 1'000'000;
  std::stringstream text(
      "{\"collage_costs\":1}\n{\"kind\":\"cover\",\"key\":\"\",\"text\":\"\","
      "\"context\":\"\",\"written\":\"\",\"value\":{\"x\":" +
      std::string(deep, '[') + std::string(deep, ']') + "}}\n");
  EXPECT_EQ(import_costs(*database, text).status().code(), ErrorCode::kBadModel);
}

}  // namespace
}  // namespace collage
