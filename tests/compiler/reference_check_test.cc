// What programs are judged on: which inputs, what the reference says, and what it cannot say.
#include "verify/reference_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/targets/backends.h"
#include "compiler/compile.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNoTime = 0, kMuchTime = 1e6;

Expr call(const char* op, std::vector<Expr> args, Attrs attrs = {}) {
  return make_call(op, std::move(args), std::move(attrs)).value();
}

template <typename Body>
Function function_of(Body&& body) {
  register_all();
  Expr x = make_var("x", TensorType{{4, 25}, DType::kFloat32});
  return make_function({x}, body(x));
}

Expr filled(float value) { return make_constant(Tensor::from<float>({1}, {value})); }

class ReferenceChecks : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("collage_judge_" + std::to_string(::getpid()));
    ::setenv("COLLAGE_CACHE", folder_.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  std::filesystem::path folder_;
};

// What the host makes of it.
Executor program_of(const Function& function) {
  ProgramOptions options;
  options.targets = {"reference"};
  options.threads = 1;
  options.worker = std::filesystem::read_symlink("/proc/self/exe");
  Result<Program> program = Program::compile(model_of(Module(function)), options);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return std::move(*program->impl().executor);
}

std::vector<std::string> names_of(ReferenceCheck& reference) {
  std::vector<std::string> names;
  const std::span<const ReferenceInputs> seeded = reference.seeded().value();
  for (const ReferenceInputs& inputs : seeded) names.push_back(inputs.name);
  return names;
}

float largest(const ReferenceInputs& judged) {
  float most = 0;
  for (int64_t i = 0; i < judged.inputs[0].size(); ++i)
    most = std::max(most, std::abs(judged.inputs[0].data<float>()[i]));
  return most;
}

TEST_F(ReferenceChecks, AsksAboutFourRangesAndTheEnds) {
  const Function tanh = function_of([](const Expr& x) { return call("tanh", {x}); });
  ReferenceCheck reference(tanh, {{}, false, kMuchTime});
  const std::span<const ReferenceInputs> asked = reference.seeded().value();
  ASSERT_EQ(asked.size(), 5U);
  EXPECT_NEAR(largest(asked[0]), 1, 0.1);
  EXPECT_NEAR(largest(asked[1]), 0.01, 0.001);
  EXPECT_NEAR(largest(asked[2]), 8, 0.8);
  EXPECT_EQ(largest(asked[3]), 1e5f);
  int64_t zeros = 0;
  for (int64_t i = 0; i < 100; ++i) zeros += asked[2].inputs[0].data<float>()[i] == 0;
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, 45);
  EXPECT_TRUE(reference.tried_all_ranges());
}

TEST_F(ReferenceChecks, AsksOnceWhereTimeIsShort) {
  const Function tanh = function_of([](const Expr& x) { return call("tanh", {x}); });
  ReferenceCheck hurried(tanh, {{}, false, kNoTime}), thorough(tanh, {{}, true, kNoTime});
  EXPECT_EQ(hurried.seeded().value().size(), 1U);
  EXPECT_FALSE(hurried.tried_all_ranges());
  EXPECT_EQ(thorough.seeded().value().size(), 5U);
}

int64_t count_nan(const Tensor& tensor) {
  const std::span<const float> values = tensor.values<float>();
  return std::count_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
}

// Of sums, which may overflow in one order of additions alone.
TEST_F(ReferenceChecks, AsksAboutNanUnderStrictAccuracy) {
  const auto sums = [](const Expr& x) { return call("sum", {x}, {{"axis", Ints{1}}}); };
  const Function function = function_of([&](const Expr& x) { return sums(call("tanh", {x})); });
  ReferenceCheck strict(function, {{}, false, kMuchTime, Rounding()}),
      by_default(function, {{}, false, kMuchTime});
  const std::span<const ReferenceInputs> asked = strict.seeded().value();
  ASSERT_EQ(asked.size(), 5U);
  EXPECT_EQ(asked[4].name, "inputs with infinities and NaN");
  EXPECT_GT(count_nan(asked[4].inputs[0]), 0);
  EXPECT_GT(count_nan(asked[4].expected[0]), 0);
  EXPECT_LT(count_nan(asked[4].expected[0]), 4);
  EXPECT_EQ(largest(asked[4]), HUGE_VALF);
  EXPECT_EQ(by_default.seeded().value().size(), 4U);

  Executor loses = program_of(function_of([&](const Expr& x) {
    const Expr zeros = make_constant(Tensor::zeros(DType::kFloat32, {4, 25}));
    return sums(call("where", {call("isnan", {x}), zeros, call("tanh", {x})}));
  }));
  const Result<ProgramError> error = strict.error(loses, model_tolerance());
  ASSERT_FALSE(error.ok());
  EXPECT_THAT(error.status().message(), HasSubstr("on inputs with infinities and NaN (seed "));
  EXPECT_TRUE(by_default.error(loses, model_tolerance()).ok());
}

// Of what computes each element by itself: infinite where the largest number is finite.
TEST_F(ReferenceChecks, AsksAboutTheLargestNumbers) {
  const auto half = [](const Expr& x) { return call("multiply", {x, filled(0.5f)}); };
  Executor overflows = program_of(function_of([&](const Expr& x) {
    return call("sqrt", {call("multiply", {half(x), half(x)})});
  }));
  ReferenceCheck by_default(function_of([&](const Expr& x) { return call("abs", {half(x)}); }),
                            {{}, false, kMuchTime});
  EXPECT_EQ(count_nan(by_default.seeded().value().back().inputs[0]), 0);
  const Result<ProgramError> error = by_default.error(overflows, model_tolerance());
  ASSERT_FALSE(error.ok());
  EXPECT_THAT(error.status().message(),
              HasSubstr("on inputs with infinities and the largest numbers (seed "));
  // What is no number there, the difference of infinities, may be lost by default alone.
  const auto difference = [](const Expr& x) { return call("subtract", {x, x}); };
  Executor zero = program_of(function_of([](const Expr& x) {
    return call("multiply", {call("clip", {x}, {{"a_min", -1.0}, {"a_max", 1.0}}), filled(0)});
  }));
  ReferenceCheck lenient(function_of(difference), {{}, false, kMuchTime}),
      strict(function_of(difference), {{}, false, kMuchTime, Rounding()});
  EXPECT_TRUE(lenient.error(zero, model_tolerance()).ok());
  EXPECT_FALSE(strict.error(zero, model_tolerance()).ok());
}

TEST_F(ReferenceChecks, TimingNeedsNoReference) {
  ReferenceCheck reference(function_of([](const Expr& x) { return call("tanh", {x}); }));
  EXPECT_EQ(reference.timing_inputs().value().size(), 1U);
  EXPECT_EQ(reference.seconds(), 0);
}

TEST_F(ReferenceChecks, TriesOtherRangesWhereAnOutputIsSilent) {
  const Function far = function_of([](const Expr& x) {
    return call("nn.relu", {call("subtract", {x, filled(20)})});
  });
  ReferenceCheck reference(far, {{}, false, kMuchTime});
  EXPECT_THAT(names_of(reference), Contains("inputs between 0 and 100"));
  EXPECT_TRUE(reference.silent(reference.seeded().value()).empty());

  const Function nowhere = function_of([](const Expr& x) {
    return call("nn.relu", {call("subtract", {x, filled(1e6)})});
  });
  ReferenceCheck another(nowhere);
  EXPECT_EQ(another.silent(another.seeded().value()).at(0), "all 0");
}

TEST_F(ReferenceChecks, OutputsThatNoInputReachesAreNotSilent) {
  const Function both = function_of([](const Expr& x) {
    return make_tuple({call("tanh", {x}), call("nn.relu", {filled(-1)})});
  });
  ReferenceCheck reference(both);
  EXPECT_TRUE(reference.silent(reference.seeded().value()).empty());
}

TEST_F(ReferenceChecks, LeavesOutWhatOverflows) {
  // exp(20 x): infinite for 8.
  const Function steep = function_of([](const Expr& x) {
    return call("exp", {call("multiply", {x, filled(20)})});
  });
  ReferenceCheck reference(steep, {{}, true, kNoTime});
  EXPECT_THAT(names_of(reference),
              ElementsAre("inputs between -1 and 1", "inputs between -0.01 and 0.01",
                          "inputs with infinities and the largest numbers"));
}

TEST_F(ReferenceChecks, ExcusesWhatTheLastDigitsDecide) {
  // The sine of x^6, multiplied in two orders: of 8 the power has no digits left behind the point.
  const Function sine = function_of([](const Expr& x) {
    const Expr square = call("multiply", {x, x});
    return call("sin", {call("multiply", {call("multiply", {square, square}), square})});
  });
  Executor in_turn = program_of(function_of([](const Expr& x) {
    Expr power = x;
    for (int i = 1; i < 6; ++i) power = call("multiply", {power, x});
    return call("sin", {power});
  }));
  ReferenceCheck reference(sine, {{}, true, kNoTime});
  ASSERT_EQ(reference.seeded().value().size(), 5U);
  const Result<ProgramError> error = reference.error(in_turn, model_tolerance());
  ASSERT_TRUE(error.ok()) << error.status().to_string();
  EXPECT_LT(error->error, 1e-4) << "not that between -8 and 8";
  EXPECT_FALSE(error->excused);
}

TEST_F(ReferenceChecks, SaysOnWhichInputsAProgramIsWrong) {
  const Function tanh = function_of([](const Expr& x) { return call("tanh", {x}); });
  // The same up to 1.
  Executor clipped = program_of(function_of([](const Expr& x) {
    return call("tanh", {call("clip", {x}, {{"a_min", -1.0}, {"a_max", 1.0}})});
  }));
  ReferenceCheck reference(
      tanh, {{{Tensor::from<float>({4, 25}, std::vector<float>(100, 2))}}, true, kNoTime});
  const Result<ProgramError> error = reference.error(clipped, model_tolerance());
  ASSERT_FALSE(error.ok());
  EXPECT_THAT(error.status().message(), HasSubstr("on inputs between -8 and 8 (seed "));
  const Result<ProgramError> given = reference.error_on_given(0, clipped, model_tolerance());
  ASSERT_FALSE(given.ok());
  EXPECT_THAT(given.status().message(), HasSubstr("on the inputs given (seed "));
}

}  // namespace
}  // namespace collage
