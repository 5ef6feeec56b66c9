// A backend fails on purpose, in every way the worker must survive: the verdict is the expected
// one, and the run ends with the right result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "compiler/compile_fixture.h"
#include "cost/measured_costs.h"
#include "cost/rows_of_kind.h"
#include "ops/interpreter.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;

struct Way {
  const char* options;  // of the target
  const char* verdict;  // regular expression for why it is invalid; empty: it is accepted
};

// The ways of the reliability bar …
const Way kWays[] = {
    {"-fault=segv", "killed by signal 11"},
    {"-fault=sigill", "killed by signal 4"},
    {"-fault=abort", "killed by signal 6"},
    {"-fault=hang", "no sign of life for"},
    {"-fault=fork", "left a child process behind"},
    {"-fault=nan", "wrong result: output 0 element [0-9]+: nan"},
    {"-fault=infinity", "wrong result: output 0 element [0-9]+: inf"},
    {"-fault=one_ulp", ""},
    {"-fault=wrong_by_a_thousandth", "wrong result"},
    {"-fault=wrong_by_a_tenth", "wrong result"},
    {"-fault=byte_past_output", "wrote behind output 0"},
    {"-fault=writes_input", "wrote into input 0: killed by signal 11"},
    {"-fault=garbage_reply", "a garbled reply"},
    {"-fault=exit", "exited with status 0"},
};
// … and some more.
const Way kOtherWays[] = {
    {"-fault=none", ""},
    {"-fault=fork_and_die", "killed by signal 6"},
    {"-fault=false_reply", "an answer to another question"},
    {"-fault=throw", "thrown on purpose"},
    {"-fault=error", "an ordinary failure"},
    {"-fault=stack_overflow", "killed by signal 11"},
    {"-fault=wrong_encoding", "the variant's output 0 is .* the function's has rank"},
    {"-fault=wrong_count", "the variant has 2 outputs, the function 1"},
    {"-fault=segv -at=compile", "killed by signal 11"},
    {"-fault=throw -at=compile", "thrown on purpose"},
    {"-fault=segv -after=9", "killed by signal 11"},
    {"-fault=hang -after=9", "no sign of life for"},
    {"-fault=exit -after=9", "exited with status 0"},
    {"-fault=unavailable", "no space left on the disk"},
    {"-fault=crash_without_memory", "out of memory: killed by signal 6"},
    {"-fault=exit_without_disk", "temporary files is full: exited with status 1"},
    {"-fault=nan -after=9", "after many runs: wrong result"},
    {"-fault=error -after=9", "an ordinary failure"},
    {"-fault=byte_past_output -after=9", "wrote behind output 0"},
};
// Where a worker's memory is limited.
const Way kWaysOfMemory[] = {
    {"-fault=oom", "bad_alloc|memory|signal 9"},
    {"-fault=leak", "bad_alloc|signal 6"},
};
const Shape kShapes[] = {{1, 4}, {3, 17}, {2, 3, 5, 33}};

constexpr const char* kNoLimit = "a worker's memory is not limited under AddressSanitizer";

class Faults : public testing::CompileTest {
 protected:
  void SetUp() override {
    ::setenv("COLLAGE_MEASURE_TIMEOUT", "2", 1);
    ::setenv("COLLAGE_MEASURE_MEMORY", "1000", 1);
  }

  ProgramOptions options(const std::string& target) {
    ProgramOptions options = options_;
    options.targets = {target, "reference"};
    options.always_measure = true;  // with one toolchain only trials would be made
    return options;
  }

  Model tanh_model(const Shape& shape) {
    std::ofstream(folder_ / "model.relay")
        << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[" << shape_to_string(shape)
        << ", float32]) {\n  tanh(%x)\n}\n";
    Result<Model> model = Model::load(folder_ / "model.relay");
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return std::move(model).value();
  }

  // Why that variant is invalid; "accepted" when it has a cost, "absent" when nobody knows it.
  static std::string verdict(const CompileReport& report, const std::string& variant) {
    for (const ReportedPlan::Kernel& kernel : report.kernels) {
      if (kernel.target != "reference" && kernel.variant.name == variant) return "accepted";
      for (const Alternative& other : kernel.alternatives) {
        if (!other.target.starts_with("faulty")) continue;
        if (!other.variant.empty() && !other.variant.starts_with(variant + "(")) continue;
        if (const auto* invalid = std::get_if<Invalid>(&other.cost)) return invalid->reason;
        return measured(other.cost) != nullptr ? "accepted" : "unknown";
      }
    }
    return "absent";
  }

  static void expect_right_result(const Model& model, Program& program) {
    const Function& main = model.impl().module.main();
    std::vector<Tensor> inputs = synthetic_inputs(main, 5).value();
    std::vector<Tensor> expected = interpret(main, inputs).value();
    Result<std::vector<Tensor>> outputs = program.run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    Difference difference = compare_tensors((*outputs)[0], expected[0], model_tolerance());
    EXPECT_TRUE(difference.within) << difference.reason;
  }

  void expect_verdict(const Way& way, const Shape& shape) {
    SCOPED_TRACE(std::string(way.options) + " " + shape_to_string(shape));
    Model model = tanh_model(shape);
    Result<Program> program =
        Program::compile(model, options(std::string("faulty ") + way.options));
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    const CompileReport& report = program->impl().report;
    if (*way.verdict == '\0') {
      EXPECT_EQ(verdict(report, "bad"), "accepted");
    } else {
      EXPECT_THAT(verdict(report, "bad"), ContainsRegex(way.verdict));
    }
    EXPECT_EQ(verdict(report, "good"), "accepted") << "what is right is measured all the same";
    expect_right_result(model, *program);
  }
};

TEST_F(Faults, FourteenWaysThreeShapes) {
  for (const Way& way : kWays)
    for (const Shape& shape : kShapes) expect_verdict(way, shape);
}

class Phases : public Progress {
 public:
  void begin(std::string_view phase, size_t, size_t, double) override { begun.emplace_back(phase); }
  void update(std::string_view, size_t, size_t, size_t, size_t) override {}
  void finish(std::string_view) override {}

  std::vector<std::string> begun;
};

TEST_F(Faults, WithoutMemoryForItsInputsNoKernelOfAModelIsTried) {
  const Model model = tanh_model({int64_t{1} << 20, int64_t{1} << 19});
  Phases phases;
  const Result<Program> program = compile_model(model, options("faulty -fault=none"), &phases);
  EXPECT_EQ(program.status().code(), ErrorCode::kUnavailable) << program.status().to_string();
  EXPECT_THAT(phases.begun, ::testing::IsEmpty());
}

TEST_F(Faults, OfMemoryThreeShapes) {
  if (!kLimitsWorkerMemory) GTEST_SKIP() << kNoLimit;
  for (const Way& way : kWaysOfMemory)
    for (const Shape& shape : kShapes) expect_verdict(way, shape);
}

TEST_F(Faults, OtherWays) {
  for (const Way& way : kOtherWays) expect_verdict(way, kShapes[1]);
}

// Of memory and time a busy machine may have had too little; a crash is the kernel's own.
TEST_F(Faults, OfMemoryAndTimeAreTriedOnceMore) {
  if (!kLimitsWorkerMemory) GTEST_SKIP() << kNoLimit;
  for (const char* fault : {"hang", "oom", "sigkill", "uncaught_bad_alloc"})
    for (const char* after : {"", " -after=9"}) {
      const std::string once = fmt::format("-fault={} -once=1{}", fault, after);
      expect_verdict({once.c_str(), ""}, kShapes[0]);
    }
  expect_verdict({"-fault=segv -once=1", "killed by signal 11"}, kShapes[0]);
  expect_verdict({"-fault=uncaught_bad_alloc", "out of memory: killed by signal 6"}, kShapes[0]);
}

// What a kernel was refused for because the machine lacked it is no news to the next process, which
// finds it there.
TEST_F(Faults, OfTheMachineAreNotKept) {
  struct Lack {
    const char *options, *verdict;
    const char *memory, *seconds;  // that the next process may use
  };
  for (const Lack& lack : {Lack{"-fault=unavailable -once=1", "no space left", "1000", "2"},
                           Lack{"-fault=slow_to_begin", "no sign of life for 2 s", "1000", "20"},
                           Lack{"-fault=needs_memory", "memory|bad_alloc", "8000", "2"}}) {
    if (!kLimitsWorkerMemory && std::string_view(lack.memory) != "1000") continue;
    expect_verdict({lack.options, lack.verdict}, kShapes[0]);
    ::setenv("COLLAGE_MEASURE_MEMORY", lack.memory, 1);
    ::setenv("COLLAGE_MEASURE_TIMEOUT", lack.seconds, 1);
    expect_verdict({lack.options, ""}, kShapes[0]);
    ::setenv("COLLAGE_MEASURE_MEMORY", "1000", 1);
    ::setenv("COLLAGE_MEASURE_TIMEOUT", "2", 1);
  }
  for (const CostRow& row : testing::rows_of_kind(folder_ / "cache" / "costs.db", "quarantine"))
    EXPECT_THAT(row.value, ::testing::HasSubstr("no sign of life")) << "alone of them is kept";
}

// Its figures and verdicts are somebody's word.
TEST_F(Faults, AnEditedRowIsMeasuredAndJudgedAgain) {
  const fs::path file = folder_ / "cache" / "costs.db";
  // Which a whole model may err by: what refuses it is the judgement of kernels.
  const Way wrong{"-fault=wrong_by_half_a_thousandth", "wrong result"};
  expect_verdict(wrong, kShapes[0]);
  int edited = 0;
  for (CostRow& row : testing::rows_of_kind(file, "function")) {
    nlohmann::json value = nlohmann::json::parse(row.value);
    for (auto& variant : value["variants"])
      if (variant["variant"]["name"] == "bad") {
        variant["cost"] = {{"median", 1e-8}, {"p10", 1e-8}, {"p90", 1e-8}, {"samples", 100}};
        ++edited;
      }
    row.value = value.dump();
    row.foreign = true;
    ASSERT_TRUE(CostDatabase::open(file)->insert(row).ok());
  }
  EXPECT_EQ(edited, 1);
  expect_verdict(wrong, kShapes[0]);
  for (const CostRow& row : testing::rows_of_kind(file, "function"))
    EXPECT_FALSE(row.foreign) << "what was found here takes its place";
}

TEST_F(Faults, AreCounted) {
  if (!kLimitsWorkerMemory) GTEST_SKIP() << kNoLimit;
  const auto counts = [&](const std::string& fault) {
    Result<Program> program =
        Program::compile(tanh_model(kShapes[0]), options("faulty -fault=" + fault));
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    const CostCounts& found = program->impl().report.estimates;
    return std::array<int, 3>{found.crashed, found.silent, found.out_of_memory};
  };
  using Counts = std::array<int, 3>;
  for (int round = 0; round < 2; ++round) {  // then from the database
    EXPECT_EQ(counts("segv"), (Counts{1, 0, 0}));
    EXPECT_EQ(counts("segv -at=variants"), (Counts{1, 0, 0}));
    EXPECT_EQ(counts("garbage_reply"), (Counts{1, 0, 0}));
    EXPECT_EQ(counts("hang"), (Counts{0, 1, 0}));
    EXPECT_EQ(counts("oom"), (Counts{0, 0, 1}));
    EXPECT_EQ(counts("sigkill -after=9"), (Counts{0, 0, 1}));
    EXPECT_EQ(counts("wrong_by_a_tenth"), (Counts{0, 0, 0}));
  }
}

TEST_F(Faults, OfAWholeTargetLeaveTheHost) {
  for (const Way& way : {Way{"-fault=segv -at=variants", "killed by signal 11"},
                         Way{"-fault=error -at=variants", "an ordinary failure"}}) {
    Model model = tanh_model({3, 5});
    Result<Program> program =
        Program::compile(model, options(std::string("faulty ") + way.options));
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    EXPECT_THAT(verdict(program->impl().report, "bad"), ContainsRegex(way.verdict));
    EXPECT_EQ(program->impl().report.kernels[0].target, "reference");
    expect_right_result(model, *program);
  }
}

TEST_F(Faults, OfTwoVariantsWhileTimedAreBothFound) {
  expect_verdict({"-fault=segv -after=9 -twice=1", "killed by signal 11"}, kShapes[0]);
  Model model = tanh_model(kShapes[0]);
  Result<Program> program =
      Program::compile(model, options("faulty -fault=segv -after=9 -twice=1"));
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->impl().report.estimates.measured, 0) << "all is known";
  EXPECT_THAT(verdict(program->impl().report, "bad too"), ContainsRegex("killed by signal 11"));
}

TEST_F(Faults, AreNotRunAgainOnThisProcessor) {
  // Other threads ask for other costs, but what hung once is not tried again.
  Model model = tanh_model(kShapes[0]);
  fs::path file = folder_ / "costs.db";
  {
    std::unique_ptr<CostDatabase> database = CostDatabase::open(file);
    CostOptions costs;
    costs.compile.threads = 1;
    costs.worker_command = {options("").worker.string(), "worker"};
    auto target = Target::parse("faulty -fault=hang").value();
    auto ask = [&](int threads) {
      costs.compile.threads = threads;  // part of the costs' key, not of the quarantine's
      MeasuredCosts measured_costs(*database, costs);
      return measured_costs.function_costs(model.impl().module.main(), {target}).value().at(0);
    };
    TargetCosts first = ask(1);
    TargetCosts second = ask(2);
    for (const TargetCosts& answer : {first, second}) {
      ASSERT_EQ(answer.variants.size(), 2u);
      EXPECT_THAT(std::get<Invalid>(answer.variants[0].cost).reason,
                  ::testing::HasSubstr("no sign of life"));
      EXPECT_NE(measured(answer.variants[1].cost), nullptr);
    }
    // The second answer repeats the first one's reason without a worker having died for it.
    costs.limits.silence_seconds = 1;
    TargetCosts third = ask(3);
    EXPECT_EQ(std::get<Invalid>(third.variants[0].cost).reason, "no sign of life for 2 s");
  }
}

TEST_F(Faults, ABlockOfAnotherMomentCorrectsADisturbedOne) {
  Model model = tanh_model(kShapes[0]);
  const Function& function = model.impl().module.main();
  std::unique_ptr<CostDatabase> database = CostDatabase::open(folder_ / "costs.db");
  CostOptions costs;
  costs.compile.threads = 1;
  costs.worker_command = {options("").worker.string(), "worker"};
  auto target = Target::parse("faulty -fault=none").value();
  MeasuredCosts known(*database, costs), asked(*database, costs);
  auto good = [&](const TargetCosts& entry) { return entry.variants.at(1); };
  Result<std::vector<TargetCosts>> answer = asked.function_costs(function, {target});
  ASSERT_TRUE(answer.ok()) << answer.status().to_string();
  const MeasuredVariant first = good(answer->at(0));

  // What one process measured no other measures again.
  EXPECT_FALSE(known.add_blocks({{function, target, first.variant}}).value()[0].has_value());

  // As if a neighbour had taken the machine meanwhile.
  std::string context, key, text;
  nlohmann::json row;
  ASSERT_TRUE(database
                  ->for_each([&](const CostRow& found) -> Status {
                    if (found.kind != "function") return {};
                    context = found.context, key = found.key, text = found.text;
                    row = nlohmann::json::parse(found.value);
                    return {};
                  })
                  .ok());
  for (auto& variant : row["variants"]) {
    for (const char* name : {"median", "p10", "p90"})
      variant["cost"][name] = 1e3 * variant["cost"][name].get<double>();
  }
  database->put("function", key, text, row.dump(), context);
  const std::optional<Cost> again =
      asked.add_blocks({{function, target, first.variant}}).value()[0];
  ASSERT_TRUE(again.has_value());
  ASSERT_NE(measured(*again), nullptr);
  EXPECT_LT(measured(*again)->median, 100 * measured(first.cost)->median);
  TargetCosts now = asked.function_costs(function, {target}).value().at(0);
  EXPECT_EQ(measured(good(now).cost)->median, measured(*again)->median) << "it is kept";
  EXPECT_GT(measured(now.variants[0].cost)->median, 100 * measured(first.cost)->median)
      << "the others stay";
  EXPECT_EQ(measured(*again)->blocks.size(), 2u);
}

TEST_F(Faults, OfOneFunctionLeaveTheOthersThatAreTimedWithIt) {
  const Model tanh = tanh_model(kShapes[0]), other = tanh_model({3, 5});
  for (const char* fault : {"segv", "segv -after=9", "none"}) {
    std::unique_ptr<CostDatabase> database =
        CostDatabase::open(folder_ / (std::string(fault) + ".db"));
    CostOptions costs;
    costs.compile.threads = 1;
    costs.worker_command = {options("").worker.string(), "worker"};
    MeasuredCosts asked(*database, costs);
    const auto faulty = Target::parse("faulty -fault=" + std::string(fault)).value();
    const auto right = Target::parse("faulty -fault=none").value();
    const auto answers = asked.function_costs(
        {{tanh.impl().module.main(), {faulty}}, {other.impl().module.main(), {right}}});
    ASSERT_TRUE(answers.ok()) << answers.status().to_string();
    const auto cost = [&](size_t function, size_t variant) {
      return answers->at(function).at(0).variants.at(variant).cost;
    };
    EXPECT_EQ(measured(cost(0, 0)) == nullptr, std::string(fault) != "none") << fault;
    EXPECT_NE(measured(cost(0, 1)), nullptr) << fault;
    EXPECT_NE(measured(cost(1, 0)), nullptr) << fault;
    EXPECT_NE(measured(cost(1, 1)), nullptr) << fault;
    EXPECT_EQ(asked.store().counts.crashed, std::string(fault) != "none") << fault;
  }
}

TEST_F(Faults, ADamagedRowOfTheMachineIsNoRow) {
  std::unique_ptr<CostDatabase> database = CostDatabase::open(folder_ / "costs.db");
  CostOptions costs;
  costs.compile.threads = 1;
  costs.worker_command = {options("").worker.string(), "worker"};
  const std::string machine = processor_name() + " threads=1";
  const Model model = tanh_model(kShapes[0]);
  const std::vector<Target> targets = {Target::parse("faulty -fault=none").value()};
  for (const char* damaged : {"", "[]", "{\"contention\": \"high\"}", "{\"contention\""}) {
    database->put("machine", CostDatabase::key_of("contention", machine), "contention", damaged,
                  machine);
    MeasuredCosts asked(*database, costs);
    EXPECT_TRUE(asked.function_costs(model.impl().module.main(), targets).ok()) << damaged;
  }
}

}  // namespace
}  // namespace collage
