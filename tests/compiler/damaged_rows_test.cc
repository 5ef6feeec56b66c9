// A database whose rows hold anything: compiling never throws, says what it left aside, measures
// again, and gives the right result.
#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "compiler/given_model.h"
#include "cost/database_tools.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// What may stand in a row's place, given what stood there.
struct Damage {
  const char* name;
  std::function<std::string(const std::string& value)> of;
};

// Every leaf of the value replaced.
Damage with_leaves(const char* name, const json& other) {
  return {name, [other](const std::string& value) {
            json changed = parse_json(value);
            const json flat = changed.flatten();
            for (const auto& [path, leaf] : flat.items()) changed[json::json_pointer(path)] = other;
            return changed.dump();
          }};
}

std::vector<Damage> damages() {
  return {
      {"empty", [](const std::string&) { return std::string(); }},
      {"no JSON", [](const std::string&) { return std::string("{\"cost\": nan"); }},
      {"truncated", [](const std::string& v) { return v.substr(0, v.size() / 2); }},
      {"another kind of value", [](const std::string&) { return std::string("[1, 2]"); }},
      {"no fields", [](const std::string&) { return std::string("{}"); }},
      {"deep", [](const std::string&) { return std::string(100'000, '['); }},
      with_leaves("null", nullptr),
      with_leaves("negative", -1),
      with_leaves("huge", 1e300),
      with_leaves("text", "text"),
      with_leaves("objects", json{{"x", 1}}),
  };
}

class DamagedRows : public testing::GivenModel {
 protected:
  DamagedRows()
      : GivenModel(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32]) {
  tanh(nn.softmax(%x))
})") {}

  void SetUp() override {
    GivenModel::SetUp();
    options_.targets = {"reference"};
    options_.always_measure = true;
    options_.max_error = 0.01;
    options_.effort = Effort::kFast;
  }

  // The kinds that were damaged.
  std::set<std::string> damage_all(const Damage& damage) {
    std::set<std::string> kinds;
    std::vector<CostRow> rows;
    std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
    EXPECT_TRUE(database
                    ->for_each([&](const CostRow& row) {
                      rows.push_back(row);
                      return Status();
                    })
                    .ok());
    for (CostRow& row : rows) {
      kinds.insert(row.kind);
      row.value = damage.of(row.value);
      EXPECT_TRUE(database->insert(row).ok());
    }
    return kinds;
  }

  void expect_right_result(Program& program) {
    const Function& main = given_.main();
    const std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
    const std::vector<Tensor> expected = interpret(main, inputs).value();
    Result<std::vector<Tensor>> outputs = program.run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    const Difference difference = compare_tensors((*outputs)[0], expected[0], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
  }
};

TEST_F(DamagedRows, AreLeftAsideAndMeasuredAgain) {
  const Model model = model_of(given_);
  ASSERT_TRUE(Program::compile(model, options_).ok());
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.name);
    const std::set<std::string> kinds = damage_all(damage);
    for (const char* kind : {"function", "cover", "in_situ", "budgets"})
      EXPECT_TRUE(kinds.count(kind)) << kind;
    EXPECT_EQ(verify_costs(*CostDatabase::open(options_.database)).status().code(),
              ErrorCode::kVerification);

    ::testing::internal::CaptureStderr();
    Result<Program> program = Status(ErrorCode::kInternal, "");
    EXPECT_NO_THROW(program = Program::compile(model, options_));
    const std::string said = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    expect_right_result(*program);
    EXPECT_GT(program->impl().report.estimates.measured, 0);
    for (const char* kind : {"function", "cover", "in_situ", "budgets"})
      EXPECT_THAT(said, HasSubstr(std::string(kind) + " ")) << said;
    EXPECT_THAT(said, HasSubstr("left aside"));

    ::testing::internal::CaptureStderr();
    program = Program::compile(model, options_);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "the rows are sound again";
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(program->impl().report.estimates.measured, 0);
  }
}

TEST_F(DamagedRows, OfConversionsAreLeftAside) {
  CostOptions options;
  options.compile.threads = 1;
  options.worker_command = {options_.worker.string(), "worker"};
  const TensorType type{{1, 16, 4, 4}, DType::kFloat32};
  Encoding blocked = plain_encoding(type);
  blocked.layout = Layout::channels_blocked(4, 16);
  const auto cost = [&] {
    std::unique_ptr<CostDatabase> database = CostDatabase::open(options_.database);
    MeasuredCosts costs(*database, options);
    return costs.conversion_cost(type, plain_encoding(type), blocked);
  };
  ASSERT_NE(find_backend(cost().value().backend), nullptr);
  std::vector<Damage> all = damages();
  all.push_back({"an unknown backend", [](const std::string& value) {
                   json changed = parse_json(value);
                   changed["backend"] = "nobody";
                   return changed.dump();
                 }});
  for (const Damage& damage : all) {
    SCOPED_TRACE(damage.name);
    damage_all(damage);
    Result<ConversionRow> again = Status(ErrorCode::kInternal, "");
    EXPECT_NO_THROW(again = cost());
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_NE(find_backend(again->backend), nullptr) << again->backend;
    EXPECT_NE(measured(again->cost), nullptr);
  }
}

// Encodings of another function would be followed beyond the ends of lists.
TEST_F(DamagedRows, OfAnotherFunctionAreLeftAside) {
  const Model model = model_of(given_);
  ASSERT_TRUE(Program::compile(model, options_).ok());
  damage_all({"variants without inputs", [](const std::string& value) {
                json changed = parse_json(value);
                if (changed.contains("variants"))
                  for (json& row : changed["variants"]) row["variant"]["inputs"] = json::array();
                return changed.dump();
              }});
  Result<Program> program = Program::compile(model, options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_GT(program->impl().report.estimates.measured, 0);
  expect_right_result(*program);
}

TEST_F(DamagedRows, UnderFrozenCostsAreMisses) {
  const Model model = model_of(given_);
  ASSERT_TRUE(Program::compile(model, options_).ok());
  options_.frozen_costs = true;
  ASSERT_TRUE(Program::compile(model, options_).ok());
  damage_all(damages()[0]);
  EXPECT_EQ(Program::compile(model, options_).status().code(), ErrorCode::kFrozenCosts);
}

}  // namespace
}  // namespace collage
