// Compiling with one toolchain: nothing is measured, and yet nothing wrong gets through.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/json_fields.h"
#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "cost/rows_of_kind.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class Light : public testing::CompileTest {
 protected:
  void SetUp() override {
    ::setenv("COLLAGE_MEASURE_TIMEOUT", "2", 1);
    ::setenv("COLLAGE_MEASURE_MEMORY", "1000", 1);
  }

  Model model(const std::string& body, const std::string& type = "(3, 17)") {
    std::ofstream(folder_ / "model.relay")
        << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[" << type << ", float32]) {\n"
        << body << "\n}\n";
    Result<Model> model = Model::load(folder_ / "model.relay");
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return std::move(model).value();
  }

  // Compiled on these targets; the result is right.
  CompileReport compiled(const Model& model, const std::string& target,
                         const std::string& other = "") {
    SCOPED_TRACE(target + " " + other);
    options_.targets = {target};
    if (!other.empty()) options_.targets.push_back(other);
    Result<Program> program = Program::compile(model, options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    if (!program) return {};
    const Function& main = model.impl().module.main();
    std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
    std::vector<Tensor> expected = interpret(main, inputs).value();
    std::vector<Tensor> outputs = program->run(inputs).value();
    Difference difference = compare_tensors(outputs[0], expected[0], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
    return program->impl().report;
  }

  static std::string used(const CompileReport& report) {
    std::string text;
    for (const ReportedPlan::Kernel& kernel : report.kernels)
      text += kernel.target.substr(0, kernel.target.find(' ')) + " " + kernel.variant.name + "; ";
    return text;
  }
};

TEST_F(Light, TakesTheFirstVariantAndTriesItOnce) {
  Model relu = model("  tanh(%x)");
  CompileReport first = compiled(relu, "faulty -fault=none");
  EXPECT_TRUE(first.light);
  EXPECT_EQ(used(first), "faulty bad; ") << "the one its backend prefers, which is right here";
  EXPECT_EQ(first.estimates.measured, 0);
  EXPECT_EQ(first.estimates.tried, 1);
  EXPECT_FALSE(first.covers.at(0).measured.has_value());
  CompileReport second = compiled(relu, "faulty -fault=none");
  EXPECT_EQ(used(second), used(first));
  EXPECT_EQ(second.estimates.tried, 0);
}

TEST_F(Light, PassesOverWhatFails) {
  for (const char* fault : {"segv", "exit", "hang", "nan", "wrong_by_a_tenth", "byte_past_output",
                            "writes_input", "throw", "error", "fork", "wrong_encoding",
                            "wrong_count", "segv -at=compile", "error -at=compile"}) {
    CompileReport report = compiled(model("  tanh(%x)"), std::string("faulty -fault=") + fault);
    EXPECT_TRUE(report.light) << fault;
    EXPECT_EQ(used(report), "faulty good; ") << fault;
  }
}

TEST_F(Light, LeavesToTheHostWhatNoVariantCanRun) {
  for (const char* fault :
       {"segv -only=1", "wrong_by_a_thousandth -only=1", "error -at=compile -only=1",
        "segv -at=variants", "error -at=variants"}) {
    Model both = model("  tanh(nn.dense(%x, %x))");
    CompileReport report = compiled(both, std::string("faulty -fault=") + fault);
    EXPECT_TRUE(report.light) << fault;
    EXPECT_EQ(report.kernels.size(), 2u) << fault;
    for (const ReportedPlan::Kernel& kernel : report.kernels)
      EXPECT_EQ(kernel.target, "reference") << fault;
  }
}

TEST_F(Light, PassesOverWhatFailsAfterItsTrial) {
  // Trials are made in another process, with constants that are made up.
  CompileReport report =
      compiled(model("  tanh(%x)"), "faulty -fault=error -at=compile_for_the_program");
  EXPECT_TRUE(report.light);
  EXPECT_EQ(used(report), "faulty good; ");
}

TEST_F(Light, AnswersFirstByEachToolchainAndKeepsTheFastest) {
  const Model both = model("  tanh(nn.dense(%x, %x))");
  options_.budget_seconds = 0;
  const CompileReport first = compiled(both, "onednn", "openvino");
  EXPECT_TRUE(first.light);
  EXPECT_EQ(first.estimates.measured, 0);
  ASSERT_EQ(first.covers.size(), 2u);
  for (const ReportedPlan& cover : first.covers) {
    EXPECT_EQ(cover.origin, "first answer");
    EXPECT_TRUE(cover.measured.has_value()) << cover.name;
  }
  const CompileReport again = compiled(both, "onednn", "openvino");
  EXPECT_EQ(again.estimates.tried, 0);
  ASSERT_EQ(again.covers.size(), 1u);
  EXPECT_EQ(again.covers[0].origin, "known plan");
  EXPECT_EQ(used(again), used(first));
  // With another demand nothing is known.
  options_.exclude = {"openvino"};
  EXPECT_EQ(compiled(both, "onednn", "openvino").covers.at(0).origin, "light");
}

TEST_F(Light, AnswersFirstByKernelsThatCompileSlowlyWhereARunTakesLong) {
  options_.budget_seconds = 0;
  EXPECT_EQ(compiled(model("  nn.dense(%x, %x)"), "onednn", "native").covers.size(), 1u);
  const Model large = model("  nn.dense(%x, %x)", "(700, 700)");
  EXPECT_EQ(compiled(large, "onednn", "native").covers.size(), 2u);
}

TEST_F(Light, APlanThatIsNoneOfTheGraphIsNotUsed) {
  const Model both = model("  tanh(nn.dense(%x, %x))");
  options_.budget_seconds = 0;
  options_.database = folder_ / "costs.db";
  for (const char* nodes : {"[]", "[0]", "[99]", "[1, 1000000000000]", "7"}) {
    compiled(both, "onednn", "openvino");
    const std::vector<CostRow> plans = testing::rows_of_kind(options_.database, "plan");
    ASSERT_EQ(plans.size(), 1u);
    nlohmann::json value = parse_json(plans[0].value);
    value["kernels"][0]["nodes"] = parse_json(nodes);
    CostDatabase::open(options_.database)
        ->put("plan", plans[0].key, plans[0].text, json_text(value), plans[0].context);
    const CompileReport again = compiled(both, "onednn", "openvino");
    EXPECT_EQ(again.covers.at(0).origin, "first answer") << nodes;
  }
}

TEST_F(Light, MeasuresBehindTheFirstAnswerWhileThereIsTime) {
  const Model both = model("  tanh(nn.dense(%x, %x))");
  options_.budget_seconds = 600;
  options_.effort = Effort::kFast;
  const CompileReport first = compiled(both, "onednn", "openvino");
  EXPECT_FALSE(first.light);
  EXPECT_GT(first.estimates.measured, 0);
  const CompileReport again = compiled(both, "onednn", "openvino");
  EXPECT_EQ(again.estimates.measured + again.estimates.tried, 0) << "nothing is left to measure";
  ASSERT_EQ(again.covers.size(), 1u);
  EXPECT_EQ(used(again), used(first));
  EXPECT_GT(again.predicted_seconds, 0) << "its costs are known";
}

TEST_F(Light, AnswersFirstWhereNoToolchainCompilesFast) {
  options_.budget_seconds = 0;
  const CompileReport report = compiled(model("  tanh(%x)"), "faulty -fault=segv");
  EXPECT_TRUE(report.light);
  EXPECT_EQ(used(report), "faulty good; ");
  options_.exclude = {"faulty"};
  EXPECT_EQ(compiled(model("  tanh(%x)"), "faulty -fault=none", "native").kernels.size(), 1u);
}

TEST_F(Light, IsNotForSeveralToolchainsNorForMaximalEffort) {
  Model relu = model("  tanh(%x)");
  EXPECT_TRUE(compiled(relu, "reference").light);
  options_.effort = Effort::kMax;
  CompileReport measured_report = compiled(relu, "faulty -fault=none");
  EXPECT_FALSE(measured_report.light);
  EXPECT_GT(measured_report.estimates.measured, 0);
  options_.effort = Effort::kDefault;
  // Now that all costs are known, they decide, and nothing needs to be tried.
  CompileReport known = compiled(relu, "faulty -fault=none");
  EXPECT_FALSE(known.light);
  EXPECT_EQ(known.estimates.measured + known.estimates.tried, 0);
  EXPECT_EQ(used(known), used(measured_report));
}

TEST_F(Light, DoesNotUseWhatIsKnownToBeInvalid) {
  // As a compilation with several toolchains leaves it: the kernel's costs are known, not the
  // host's, so the database does not suffice for a search.
  Model relu = model("  tanh(nn.dense(%x, %x))");
  Target target = Target::parse("faulty -fault=nan -after=9 -only=1").value();
  {
    std::unique_ptr<CostDatabase> database = CostDatabase::open(folder_ / "costs.db");
    CostOptions costs;
    costs.compile.threads = 1;
    costs.cache = CacheState::kWarm;
    costs.worker_command = {options_.worker.string(), "worker"};
    MeasuredCosts measured_costs(*database, costs);
    Function tanh = model("  tanh(%x)", "(3, 3)").impl().module.main();
    TargetCosts answer = measured_costs.function_costs(tanh, {target}).value().at(0);
    ASSERT_TRUE(std::holds_alternative<Invalid>(answer.variants.at(0).cost));
  }
  options_.database = folder_ / "costs.db";
  CompileReport report = compiled(relu, target.to_string());
  EXPECT_EQ(report.estimates.tried, 0) << "a trial of few runs would have found it right";
  EXPECT_EQ(used(report).find("faulty"), std::string::npos) << used(report);
}

}  // namespace
}  // namespace collage
