// Whole programs are checked before they are chosen: with the model's own weights, on several
// inputs, against what the user allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/log.h"
#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "cost/rows_of_kind.h"
#include "ir/op.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// What is logged while it lives.
class LoggedText {
 public:
  LoggedText() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
    log::logger().sinks().push_back(sink_);
  }
  ~LoggedText() { std::erase(log::logger().sinks(), sink_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  spdlog::sink_ptr sink_;
};

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class CoverChecks : public testing::CompileTest {
 protected:
  void SetUp() override {
    options_.effort = Effort::kFast;
    options_.always_measure = true;
    options_.database = folder_ / "costs.db";
  }

  // f(x * weight + offset), f computed by `faulty` or the host, the rest by the host. Weights are
  // tensors: the text of a function holds single numbers by value.
  static Model model(float weight, float offset = 0, const char* f = "tanh") {
    Expr x = make_var("x", TensorType{{3, 17}, DType::kFloat32});
    auto all = [](float value) {
      return make_constant(Tensor::from<float>({17}, std::vector<float>(17, value)));
    };
    Expr sum = *make_call("add", {*make_call("multiply", {x, all(weight)}), all(offset)});
    return model_of(Module(make_function({x}, *make_call(f, {sum}))));
  }

  Result<Program> compile(const Model& model, const std::string& faulty) {
    options_.targets = {"faulty " + faulty, "reference"};
    return Program::compile(model, options_);
  }
  // Compiled, and right on inputs of that range. What all covers take is known by then: the one
  // with `faulty` next to nothing.
  CompileReport compiled(const Model& model, const std::string& faulty,
                         const SyntheticRange& range = {}) {
    set_timings(as<CallNode>(model.impl().module.main()->body)->op->name.c_str(), faulty);
    Result<Program> program = compile(model, faulty);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    if (!program) return {};
    const Function& main = model.impl().module.main();
    std::vector<Tensor> inputs = synthetic_inputs(main, 5, range).value();
    std::vector<Tensor> outputs = program->run(inputs).value();
    Difference difference =
        compare_tensors(outputs[0], interpret(main, inputs).value()[0], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
    return program->impl().report;
  }

  // Timings as if the cover with `faulty` were far the fastest; with small weights, of which it
  // computes nothing wrong.
  void set_timings(const char* f, const std::string& faulty) {
    if (!timed_.insert(f + faulty).second) return;
    const ProgramOptions before = options_;
    options_.max_error = 0;
    options_.frozen_costs = false;
    options_.check_inputs.clear();
    options_.targets = {"reference"};
    ASSERT_TRUE(Program::compile(model(0.01f, 0, f), options_).ok());
    std::set<std::string> of_the_host;
    for (const CostRow& row : rows("cover")) of_the_host.insert(row.key);
    ASSERT_TRUE(compile(model(0.01f, 0, f), faulty).ok());
    for (const CostRow& row : rows("cover")) {
      nlohmann::json value = nlohmann::json::parse(row.value);
      const double seconds = of_the_host.contains(row.key) ? 1 : 1e-9;
      for (const char* figure : {"median", "p10", "p90"}) value["cost"][figure] = seconds;
      CostDatabase::open(options_.database)
          ->put("cover", row.key, row.text, value.dump(), row.context);
    }
    options_ = before;
  }

  static bool uses(const CompileReport& report, const std::string& backend) {
    return std::any_of(
        report.kernels.begin(), report.kernels.end(),
        [&](const ReportedPlan::Kernel& kernel) { return kernel.target.starts_with(backend); });
  }
  std::vector<CostRow> rows(const std::string& kind) {
    return testing::rows_of_kind(options_.database, kind);
  }

  std::set<std::string> timed_;
};

// A kernel that is right on what it is measured with, and wrong on larger numbers.
constexpr const char* kWrongAboveTwo = "-fault=wrong_by_a_tenth -above=2 -only=1";

TEST_F(CoverChecks, ARetrainedModelIsCheckedWithItsOwnWeights) {
  const Model trained = model(0.01f), retrained = model(9);
  const CompileReport first = compiled(trained, kWrongAboveTwo);
  EXPECT_TRUE(uses(first, "faulty")) << "it is right, and faster";

  options_.frozen_costs = true;  // timings are those of the other weights
  const CompileReport second = compiled(retrained, kWrongAboveTwo);
  EXPECT_FALSE(uses(second, "faulty"));
  EXPECT_EQ(second.estimates.measured, 0);
  const size_t known = rows("check").size();
  EXPECT_GT(known, 0U);

  // What is known of either model is not run again.
  EXPECT_TRUE(uses(compiled(trained, kWrongAboveTwo), "faulty"));
  EXPECT_FALSE(uses(compiled(retrained, kWrongAboveTwo), "faulty"));
  EXPECT_EQ(rows("check").size(), known);
}

TEST_F(CoverChecks, ARefusedCoverIsNamedInAWarning) {
  compiled(model(0.01f), kWrongAboveTwo);
  LoggedText logged;
  compiled(model(9), kWrongAboveTwo);
  EXPECT_THAT(logged.text(), HasSubstr("is left out"));
  EXPECT_THAT(logged.text(), HasSubstr("instead of"));
}

TEST_F(CoverChecks, AreMadeOnInputsOfSeveralRanges) {
  // Right for what lies between -1 and 1, as the measuring worker's data does.
  const CompileReport report = compiled(model(1), kWrongAboveTwo, {-8, 8});
  EXPECT_FALSE(uses(report, "faulty"));
  EXPECT_TRUE(report.phase_seconds.contains("checking"));
}

TEST_F(CoverChecks, OtherInputsAreTriedWhereOutputsAreAllZero) {
  // relu(x - 20): 0 for inputs around 0.
  const CompileReport report =
      compiled(model(1, -20, "nn.relu"), "-fault=wrong_by_a_tenth -above=25 -only=1", {0, 100});
  EXPECT_FALSE(uses(report, "faulty"));
}

TEST_F(CoverChecks, AnOutputThatIsAlwaysZeroIsNamedOnce) {
  LoggedText logged;
  compiled(model(0, -1, "nn.relu"), "-fault=none");
  EXPECT_EQ(occurrences(logged.text(), "proves nothing"), 1) << logged.text();
  EXPECT_THAT(logged.text(), HasSubstr("'output0'"));
}

TEST_F(CoverChecks, AnOutputThatIsAlwaysTheSameIsNamed) {
  LoggedText logged;
  compiled(model(0, 1), "-fault=none");
  EXPECT_THAT(logged.text(), HasSubstr("the same"));
}

TEST_F(CoverChecks, AnOrdinaryOutputIsNotNamed) {
  LoggedText logged;
  compiled(model(1), "-fault=none");
  EXPECT_THAT(logged.text(), Not(HasSubstr("proves nothing")));
}

TEST_F(CoverChecks, InputsOfTheUserCount) {
  constexpr const char* kWrongAboveFifty = "-fault=wrong_by_a_tenth -above=50 -only=1";
  EXPECT_TRUE(uses(compiled(model(1), kWrongAboveFifty), "faulty")) << "no seeded input shows it";
  options_.check_inputs = {{Tensor::from<float>({3, 17}, std::vector<float>(51, 60))}};
  EXPECT_FALSE(uses(compiled(model(1), kWrongAboveFifty), "faulty"));
  options_.frozen_costs = true;
  EXPECT_FALSE(uses(compiled(model(1), kWrongAboveFifty), "faulty")) << "as a warm compile knows";
  options_.check_inputs[0][0] = Tensor::zeros(DType::kFloat32, {3, 17});
  EXPECT_TRUE(uses(compiled(model(1), kWrongAboveFifty), "faulty")) << "other inputs";
}

TEST_F(CoverChecks, InputsOfTheUserAreTheModels) {
  for (const std::vector<Tensor>& wrong :
       std::vector<std::vector<Tensor>>{{},
                                        {Tensor::zeros(DType::kFloat32, {3, 16})},
                                        {Tensor::zeros(DType::kInt64, {3, 17})}}) {
    options_.check_inputs = {wrong};
    const Result<Program> program = compile(model(1), "-fault=none");
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.status().code(), ErrorCode::kBadModel);
  }
}

TEST_F(CoverChecks, ADamagedRowIsNotKnown) {
  compiled(model(1), kWrongAboveTwo);
  const std::vector<CostRow> known = rows("check");
  ASSERT_FALSE(known.empty());
  for (const char* damaged : {"", "[]", "{}", R"({"error": "none", "failure": ""})",
                              R"({"error": 0, "failure": 1, "all_ranges": true})",
                              R"({"error": 0, "failure": "", "all_ranges": 1})"}) {
    for (const CostRow& row : known)
      CostDatabase::open(options_.database)->put("check", row.key, row.text, damaged, row.context);
    EXPECT_FALSE(uses(compiled(model(1), kWrongAboveTwo), "faulty")) << damaged;
  }
}

// Somebody who imports a database, or edits one, gets no program that this machine did not check.
TEST_F(CoverChecks, ACheckThatWasNotMadeHereIsMadeAgain) {
  const Model large = model(9);
  EXPECT_FALSE(uses(compiled(large, kWrongAboveTwo), "faulty"));
  for (CostRow& row : rows("check")) {
    nlohmann::json value = nlohmann::json::parse(row.value);
    value["error"] = 0;
    value["failure"] = "";
    row.value = value.dump();
    row.foreign = true;
    ASSERT_TRUE(CostDatabase::open(options_.database)->insert(row).ok());
  }
  options_.frozen_costs = true;  // which believes what others measured
  EXPECT_FALSE(uses(compiled(large, kWrongAboveTwo), "faulty"));
}

// An error within float32's tolerance for whole models, and beyond the user's.
constexpr const char* kSlightlyWrong = "-fault=wrong_by_half_a_thousandth -above=2 -only=1";

TEST_F(CoverChecks, TheLargestErrorAllowedBoundsFloat32) {
  const Model large = model(9);
  EXPECT_TRUE(uses(compiled(large, kSlightlyWrong), "faulty"));
  options_.max_error = 1e-4;
  EXPECT_FALSE(uses(compiled(large, kSlightlyWrong), "faulty"));
  EXPECT_FALSE(uses(compiled(large, kSlightlyWrong), "faulty")) << "as a warm compile knows";
  options_.max_error = 1e-2;
  EXPECT_TRUE(uses(compiled(large, kSlightlyWrong), "faulty"));
}

TEST_F(CoverChecks, WhereNoCoverIsWithinTheLargestErrorTheBestIsNamed) {
  Expr x = make_var("x", TensorType{{3, 17}, DType::kFloat32});
  Expr last =
      *make_call("add", {x, make_constant(Tensor::from<float>({17}, std::vector<float>(17, 9)))});
  for (int i = 0; i < 2; ++i) last = *make_call("negative", {last});
  const Model negatives = model_of(Module(make_function({x}, last)));
  ASSERT_TRUE(compile(negatives, kSlightlyWrong).ok());
  // The host so slow that each of the best covers has kernels of the other.
  for (const CostRow& row : rows("function")) {
    nlohmann::json value = nlohmann::json::parse(row.value);
    if (value["target"] != "reference") continue;
    for (nlohmann::json& variant : value["variants"])
      for (const char* figure : {"median", "p10", "p90"}) variant["cost"][figure] = 1;
    CostDatabase::open(options_.database)
        ->put("function", row.key, row.text, value.dump(), row.context);
  }
  options_.max_error = 1e-5;
  const Result<Program> program = compile(negatives, kSlightlyWrong);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), ErrorCode::kVerification);
  EXPECT_THAT(program.status().to_string(),
              HasSubstr("the largest error allowed, 1e-05: the best"));
  EXPECT_THAT(program.status().to_string(), HasSubstr("errs by 0.0005"));
}

TEST_F(CoverChecks, StrictAccuracyAndALargestErrorExcludeEachOther) {
  options_.max_error = 1e-2;
  options_.strict_accuracy = true;
  const Result<Program> program = compile(model(1), "-fault=none");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), ErrorCode::kUsage);
}

TEST_F(CoverChecks, ALargestErrorIsANumberFrom0To1) {
  for (double wrong : {-1e-3, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    options_.max_error = wrong;
    const Result<Program> program = compile(model(1), "-fault=none");
    ASSERT_FALSE(program.ok()) << wrong;
    EXPECT_EQ(program.status().code(), ErrorCode::kUsage) << wrong;
  }
}

TEST_F(CoverChecks, WithOneToolchainTheProgramIsCheckedToo) {
  options_.always_measure = false;
  const Model large = model(9);
  auto compiled_lightly = [&](const char* faulty) {
    options_.targets = {std::string("faulty ") + faulty};
    Result<Program> program = Program::compile(large, options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    if (!program) return CompileReport{};
    const Function& main = large.impl().module.main();
    std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
    EXPECT_TRUE(compare_tensors(program->run(inputs).value()[0], interpret(main, inputs).value()[0],
                                model_tolerance())
                    .within);
    EXPECT_TRUE(program->impl().report.light);
    return program->impl().report;
  };
  auto variant_of = [](const CompileReport& report) {
    for (const ReportedPlan::Kernel& kernel : report.kernels)
      if (kernel.target.starts_with("faulty")) return kernel.variant.name;
    return std::string();
  };
  // Another variant, and the host where there is none.
  EXPECT_EQ(variant_of(compiled_lightly("-fault=wrong_by_a_tenth -above=2")), "good");
  const size_t known = rows("check").size();
  EXPECT_GT(known, 0U);
  EXPECT_EQ(variant_of(compiled_lightly("-fault=wrong_by_a_tenth -above=2")), "good");
  EXPECT_EQ(rows("check").size(), known);
  EXPECT_EQ(variant_of(compiled_lightly(kWrongAboveTwo)), "");
  EXPECT_EQ(variant_of(compiled_lightly("-fault=none")), "bad");
}

}  // namespace
}  // namespace collage
