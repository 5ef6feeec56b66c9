// Programs of models over symbols, by the public headers alone.
#include <collage/collage.h>
#include <collage/symbolic.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

using ::testing::ElementsAreArray;

Result<Model> two_of_each_row(const SymbolicModel::Sizes& sizes) {
  const int64_t n = sizes.at("n");
  auto x = Expression::parameter("x", DType::kFloat32, {n, 3}).value();
  const auto rows = Expression::call("tile", {x}, {{"reps", Shape{2, 1}}}).value();
  const auto flat = Expression::call("reshape", {rows}, {{"newshape", Shape{6 * n}}}).value();
  return with_function(*parse_model("def @main(%x: Tensor[(1), float32]) { %x }"), "main",
                       Expression::function({x}, flat).value());
}

TEST(SymbolicProgram, IsCompiledForTheShapesThatCome) {
  const Result<SymbolicModel> made = SymbolicModel::generalise({"n"}, two_of_each_row);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  DynamicOptions options;
  options.program.targets = {"reference"};
  Result<Program> program = Program::compile(*made, options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  for (const int64_t n : {1, 4}) {
    std::vector<float> values(static_cast<size_t>(3 * n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto results = program->run({Tensor::from<float>({n, 3}, values)});
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    values.insert(values.end(), values.begin(), values.end());
    EXPECT_THAT(results->at(0).values<float>(), ElementsAreArray(values));
  }
  options.constants["x"] = Tensor::from<float>({1, 3}, {0, 0, 0});
  EXPECT_EQ(Program::compile(*made, options).status().to_string(),
            "a model over symbols: constants and operators are of ONNX models");
}

// The sum of all that came: what came before is a state, padded to buckets.
TEST(SymbolicProgram, KeepsStates) {
  const Result<SymbolicModel> made =
      SymbolicModel::generalise({"past", "n"}, [](const SymbolicModel::Sizes& sizes) {
        return parse_model(
            fmt::format("def @main(%before: Tensor[({}, 2), float32], %x: "
                        "Tensor[({}, 2), float32]) {{\n"
                        "  %0 = concatenate((%before, %x), axis=0);\n"
                        "  (sum(%0, axis=[0]), %0)\n}}\n",
                        sizes.at("past"), sizes.at("n")));
      });
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  DynamicOptions options;
  options.program.targets = {"reference"};
  options.buckets["past"] = {4, 16};
  options.states["before"] = "output1";
  Result<Program> program = Program::compile(*made, options);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program->inputs().size(), 1u);
  float sum = 0;
  for (const int64_t n : {1, 3, 2, 5, 1}) {
    std::vector<float> values;
    for (int64_t i = 0; i < 2 * n; ++i) values.push_back(static_cast<float>(n + i / 2));
    for (int64_t i = 0; i < n; ++i) sum += static_cast<float>(n + i);
    const auto results = program->run({Tensor::from<float>({n, 2}, values)});
    ASSERT_TRUE(results.ok()) << results.status().to_string();
    EXPECT_THAT(results->at(0).values<float>(), ElementsAreArray({sum, sum}));
  }
}

}  // namespace
}  // namespace collage
