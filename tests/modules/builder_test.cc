// Modules that are built statement by statement, by the public headers alone: what is printed, what
// is refused, and that the compiled program computes it.
#include <collage/builder.h>
#include <collage/collage.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kProgram = R"(program {
  param A: float32[8, 16];
  stage M[i:8] = max(k:16) A[i, k];
  result C[i:8, j:16] = A[i, j] - M[i];
}
)";

Expression parameter(const std::string& name, const Shape& shape) {
  return Expression::parameter(name, DType::kFloat32, shape).value();
}

std::vector<float>& built_log() {
  static std::vector<float> values;
  return values;
}

void register_built_log() {
  const Status registered = register_function({
      .label = "built.log",
      .types = [](std::span<const ArrayType> inputs) -> Result<std::vector<ArrayType>> {
        if (inputs.size() != 1) return Status(ErrorCode::kBadModel, "one array");
        return std::vector<ArrayType>();
      },
      .call = [](std::span<const Tensor> inputs, std::span<Tensor> results,
                 const Expression::Attributes& attributes) -> Status {
        EXPECT_TRUE(results.empty());
        EXPECT_EQ(attributes.at(0).first, "times");
        const auto times = static_cast<float>(std::get<int64_t>(attributes.at(0).second));
        built_log().push_back(inputs[0].data<float>()[0] * times);
        return {};
      },
      .attributes = {{"times", int64_t{1}}},
      .effects = true,
  });
  ASSERT_TRUE(registered.ok()) << registered.to_string();
}

class Builder : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_built_log(); }
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("collage_builder_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    options_.database = folder_ / "costs.db";
    options_.targets = {"native"};
    options_.effort = Effort::kFast;
    options_.threads = 1;
    options_.worker = std::filesystem::read_symlink("/proc/self/exe");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  ProgramOptions options_;
};

TEST_F(Builder, FunctionsAreBuiltByStatements) {
  ModuleBuilder builder;
  const Expression x = parameter("x", {8, 16}), p = parameter("p", {8, 16});
  ASSERT_TRUE(builder.begin("half", {p}).ok());
  const Expression half = Expression::constant(Tensor::scalar(0.5f)).value();
  const Expression function =
      builder.output(Expression::call("multiply", {p, half}).value()).value();
  ASSERT_TRUE(builder.begin("main", {x}).ok());
  ASSERT_TRUE(builder.begin_dataflow().ok());
  const TensorProgram program = TensorProgram::parse(kProgram).value();
  const Expression centred = builder.emit_te(program, {x}, "centred").value();
  const Expression again = builder.emit_te(program, {centred}, "other").value();
  const Expression soft = builder.emit_te("nn.softmax", {again}, {{"axis", int64_t{-1}}}).value();
  EXPECT_THAT(builder.emit_packed("built.log", {soft}).status().to_string(),
              HasSubstr("a call with effects in a block of dataflow"));
  ASSERT_TRUE(builder.end_dataflow().ok());
  ASSERT_TRUE(builder.emit_packed("built.log", {x}, {{"times", int64_t{3}}}).ok());
  const Expression y = builder.emit(Expression::call(function, {soft}).value()).value();
  ASSERT_TRUE(builder.emit_packed("built.log", {y}).ok());
  EXPECT_THAT(builder.model().status().to_string(), HasSubstr("@main has no output yet"));
  EXPECT_THAT(builder.begin("other", {}).to_string(), HasSubstr("@main has no output yet"));
  ASSERT_TRUE(builder.output(x).ok());
  const Result<Model> model = builder.model();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const std::string text = model_text(*model).value();
  EXPECT_THAT(text, HasSubstr("program @centred {\n  param A: float32[8, 16];\n"));
  EXPECT_THAT(text, HasSubstr("program @nn_softmax {\n"));
  EXPECT_EQ(text.find("@other"), std::string::npos) << text;
  EXPECT_THAT(text.substr(text.find("def @main")), HasSubstr("  %0 = @centred(%x);\n"
                                                             "  %1 = @centred(%0);\n"
                                                             "  %2 = @nn_softmax(%1);\n"
                                                             "  %3 = @half(%2);\n"
                                                             "  %4 = @built_log_1(%x);\n"
                                                             "  %5 = after(%3, %4);\n"
                                                             "  %6 = @built_log(%5);\n"
                                                             "  after(%x, %6)\n"));
  EXPECT_EQ(model_text(parse_model(text).value()).value(), text);

  Result<collage::Program> compiled = collage::Program::compile(*model, options_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  EXPECT_TRUE(built_log().empty());
  Tensor input = Tensor::empty(DType::kFloat32, {8, 16});
  for (int64_t i = 0; i < input.size(); ++i) input.data<float>()[i] = i % 16 == 0 ? 2.0f : 0.0f;
  const Result<std::vector<Tensor>> results = compiled->run(std::vector<Tensor>{input});
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_THAT((*results)[0].values<float>(), ::testing::ElementsAreArray(input.values<float>()));
  const float e = std::exp(-2.0f);
  EXPECT_THAT(built_log(), ElementsAre(6, ::testing::FloatNear(0.5f / (1 + 15 * e), 1e-6f)));
}

TEST_F(Builder, ProgramsAreObjects) {
  const TensorProgram program = TensorProgram::parse(kProgram).value();
  EXPECT_EQ(program.text(), kProgram);
  EXPECT_EQ(program.parameters().at(0).name, "A");
  EXPECT_EQ(program.results().at(0).shape, (Shape{8, 16}));
  EXPECT_TRUE(program.schedule().empty());
  const TensorProgram scheduled =
      program.scheduled({"M.compute_root()", "C.vectorise(j, 8);", "C.parallel(i)"}).value();
  EXPECT_THAT(scheduled.schedule(),
              ElementsAre("M.compute_root();", "C.vectorise(j, 8);", "C.parallel(i);"));
  EXPECT_EQ(scheduled.scheduled({}).value().text(), kProgram);
  EXPECT_THAT(program.scheduled({"D.parallel(i)"}).status().to_string(), HasSubstr("D"));
  EXPECT_THAT(program.scheduled({"C.parallel(i); } }"}).status().to_string(), HasSubstr("line"));
  EXPECT_FALSE(
      TensorProgram::parse("program (n = 3) { param A: float32[n]; result C[i:n] = A[i]; }").ok());
  const TensorProgram dense =
      TensorProgram::emit("nn.dense", {{{4, 8}, DType::kFloat32}, {{3, 8}, DType::kFloat32}})
          .value();
  EXPECT_EQ(dense.parameters().size(), 2U);
  EXPECT_EQ(dense.results().at(0).shape, (Shape{4, 3}));
  // A parameter that nothing reads is one all the same.
  const Expression a = parameter("a", {4}), b = parameter("b", {5});
  const TensorProgram second =
      TensorProgram::emit(
          Expression::function({a, b}, Expression::call("exp", {b}).value()).value())
          .value();
  EXPECT_EQ(second.parameters().at(0).shape, (Shape{4}));
  EXPECT_EQ(second.results().at(0).shape, (Shape{5}));
  EXPECT_FALSE(TensorProgram::emit("nn.strange", {}).ok());
  EXPECT_FALSE(TensorProgram::emit(a).ok());
}

TEST_F(Builder, RefusesWhatIsOutOfOrder) {
  ModuleBuilder builder;
  const Expression x = parameter("x", {4});
  EXPECT_THAT(builder.emit(x).status().to_string(), HasSubstr("no function is open"));
  EXPECT_FALSE(builder.begin_dataflow().ok());
  EXPECT_THAT(builder.model().status().to_string(), HasSubstr("@main"));
  EXPECT_FALSE(builder.begin("main", {Expression::call("exp", {x}).value()}).ok());
  ASSERT_TRUE(builder.begin("main", {x}).ok());
  EXPECT_FALSE(builder.end_dataflow().ok());
  ASSERT_TRUE(builder.begin_dataflow().ok());
  EXPECT_FALSE(builder.begin_dataflow().ok());
  EXPECT_THAT(builder.output(x).status().to_string(), HasSubstr("a block of dataflow is open"));
  ASSERT_TRUE(builder.end_dataflow().ok());
  EXPECT_THAT(builder.emit_packed("built.nobody", {x}).status().to_string(),
              HasSubstr("built.nobody"));
  EXPECT_FALSE(builder.emit_te(TensorProgram::parse(kProgram).value(), {x}).ok());
  const Expression known =
      builder.emit_packed("built.nobody", {x}, {}, {{{2}, DType::kInt8}, {{}, DType::kFloat32}})
          .value();
  EXPECT_EQ(known.type(), "(Tensor[(2), int8], float32)");
  ASSERT_TRUE(builder.output(known).ok());
  EXPECT_FALSE(builder.begin("main", {x}).ok());
  EXPECT_TRUE(builder.model().ok()) << builder.model().status().to_string();
}

}  // namespace
}  // namespace collage
