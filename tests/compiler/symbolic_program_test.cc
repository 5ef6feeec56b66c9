// Programs of text over symbols: specialisations, what inputs may not be, files.
#include <collage/dynamic.h>
#include <collage/module.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "dynamic/dynamic_program.h"
#include "verify/comparison.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSymbolicText = R"(
program @centred {
  param A: float32[n, 8];
  stage M[i:n] = max(k:8) A[i, k];
  result C[i:n, j:8] = A[i, j] - M[i];
}
def @scores(%a: Tensor[(n, 8), float32], %b: Tensor[(m, 8), float32]) -> Tensor[(n, m), float32] {
  nn.dense(%a, %b)
}
def @main(%x: Tensor[(n, 8), float32], %y: Tensor[(m, 8), float32], %bias: Tensor[(n, m), float32]) {
  %0 = @scores(@centred(exp(%x)), %y);
  (nn.softmax(add(%0, %bias)), concatenate((%x, %y), axis=0))
}
)";

class SymbolicPrograms : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text, const std::string& name = "m.relay") {
    const std::filesystem::path path = folder_ / name;
    EXPECT_TRUE(write_file_atomically(path, text).ok());
    return path;
  }
  static DynamicOptions options(const std::string& target = "native") {
    DynamicOptions options;
    options.program.targets = {target};
    options.program.worker = std::filesystem::read_symlink("/proc/self/exe");
    return options;
  }
  static std::vector<Tensor> inputs(int64_t n, int64_t m) {
    const auto filled = [](const Shape& shape, float step) {
      Tensor tensor = Tensor::empty(DType::kFloat32, shape);
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.data<float>()[i] = 0.1f * static_cast<float>((i * 7) % 11) - step;
      return tensor;
    };
    return {filled({n, 8}, 0.5f), filled({m, 8}, 0.25f), filled({n, m}, 1)};
  }

  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      fmt::format("{}symbolic-{}-{}", ::testing::TempDir(), ::getpid(),
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(SymbolicPrograms, SpecialisationsComputeWhatTheModelOfTheirSizesDoes) {
  const std::filesystem::path path = write(kSymbolicText);
  Result<Program> program = Program::compile(path, options());
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program->inputs()[0].dims, (std::vector<std::string>{"n", "8"}));
  EXPECT_EQ(program->outputs()[1].dims, (std::vector<std::string>{"n + m", "8"}));
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{160, 96}, {33, 7}, {160, 96}}) {
    LoadOptions sizes;
    sizes.dims = {{"n", n}, {"m", m}};
    Result<Model> model = Model::load(path, sizes);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    Result<Program> fixed = Program::compile(*model, options().program);
    ASSERT_TRUE(fixed.ok()) << fixed.status().to_string();
    const std::vector<Tensor> given = inputs(n, m);
    const Result<std::vector<Tensor>> expected = fixed->run(given);
    const Result<std::vector<Tensor>> actual = program->run(given);
    ASSERT_TRUE(actual.ok()) << actual.status().to_string();
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ((*actual)[i].shape(), (*expected)[i].shape());
      // The same kernels; what is little work is interpreted.
      if (n == 160) {
        EXPECT_EQ(std::memcmp((*actual)[i].raw(), (*expected)[i].raw(), (*expected)[i].bytes()), 0);
      }
      EXPECT_TRUE(compare_tensors((*actual)[i], (*expected)[i], model_tolerance()).within);
    }
  }
  EXPECT_EQ(program->specialisations().size(), 2u);
}

TEST_F(SymbolicPrograms, ShapesThatContradictEachOtherAreRefused) {
  Result<Program> program = Program::compile(write(kSymbolicText), options());
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  std::vector<Tensor> given = inputs(4, 3);
  given[2] = Tensor::empty(DType::kFloat32, {4, 5});
  EXPECT_THAT(program->run(given).status().to_string(), HasSubstr("'bias' has shape (4, 5)"));
  const std::filesystem::path product =
      write("def @main(%x: Tensor[(n), float32], %y: Tensor[(2 * n), float32]) { (%x, %y) }\n");
  program = Program::compile(product, options());
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_EQ(program->run({Tensor::empty(DType::kFloat32, {3}), Tensor::empty(DType::kFloat32, {7})})
                .status()
                .message(),
            "dimension 0 of 'y' is 7, not 2 * n with n = 3");
}

TEST_F(SymbolicPrograms, BucketsPadAndTheFileServesThem) {
  const std::filesystem::path path = write(
      "def @main(%x: Tensor[(n, 8), float32], %y: Tensor[(m, 8), float32]) {\n"
      "  (exp(%x), concatenate((%x, %y), axis=0))\n}\n");
  DynamicOptions asked = options();
  asked.buckets = {{"n", {4, 16}}, {"m", {3}}};
  Result<Program> program = Program::compile(path, asked);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  ASSERT_TRUE(program->prepare_buckets().ok());
  EXPECT_EQ(program->specialisations().size(), 2u);
  const std::filesystem::path file = folder_ / "m.collage";
  const Status saved = program->save(file);
  ASSERT_TRUE(saved.ok()) << saved.to_string();
  Result<Program> loaded = Program::load(file);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  for (const int64_t n : {1, 4, 9}) {
    std::vector<Tensor> given = inputs(n, 2);
    given.pop_back();
    const Result<std::vector<Tensor>> outputs = loaded->make_context()->run(given);
    ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
    ASSERT_EQ((*outputs)[1].shape(), (Shape{n + 2, 8}));
    EXPECT_EQ(std::memcmp((*outputs)[1].raw(), given[0].raw(), given[0].bytes()), 0);
    EXPECT_EQ(std::memcmp((*outputs)[1].data<float>() + n * 8, given[1].raw(), given[1].bytes()),
              0);
  }
}

TEST_F(SymbolicPrograms, OptionsOfOtherModelsAreRefused) {
  const std::filesystem::path path = write(kSymbolicText);
  DynamicOptions asked = options();
  asked.states["x"] = "output0";
  EXPECT_THAT(Program::compile(path, asked).status().to_string(),
              HasSubstr("state 'x' has no dimension with buckets"));
  asked = options();
  asked.constants["x"] = Tensor::scalar<float>(0);
  EXPECT_THAT(Program::compile(path, asked).status().to_string(), HasSubstr("are of ONNX models"));
  asked = options();
  asked.buckets["k"] = {8};
  EXPECT_EQ(Program::compile(path, asked).status().message(),
            "buckets for 'k', which is no dimension");
  LoadOptions load;
  EXPECT_THAT(Model::load(path, load).status().to_string(), HasSubstr("symbol n has no value"));
  load.dims = {{"n", 2}, {"k", 3}};
  EXPECT_THAT(Model::load(path, load).status().to_string(),
              HasSubstr("a value is given for symbol k"));
  load.dims.clear();
  load.shapes = {{"bias", {5, 6}}};
  EXPECT_EQ(Model::load(path, load)->outputs()[1].shape, (Shape{11, 8}));
}

TEST_F(SymbolicPrograms, TextWithoutSymbolsIsOneSpecialisation) {
  const std::filesystem::path path = write("def @main(%x: Tensor[(4, 8), float32]) { exp(%x) }\n");
  Result<Program> program = Program::compile(path, options());
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_TRUE(program->run({Tensor::empty(DType::kFloat32, {4, 8})}).ok());
  EXPECT_EQ(program->run({Tensor::empty(DType::kFloat32, {5, 8})}).status().message(),
            "input 'x' has shape (5, 8), where dimension 0 is not '4'");
  EXPECT_THAT(Program::compile(write("def @main(%x: float32) { strange(%x) }\n"), options())
                  .status()
                  .to_string(),
              HasSubstr("unknown operator 'strange'"));
}

TEST_F(SymbolicPrograms, TextIsParsedForValuesOfItsSymbols) {
  const Result<Model> model = parse_model(kSymbolicText, {}, {{"n", 5}, {"m", 2}});
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_THAT(model_text(*model).value(), HasSubstr("param A: float32[5, 8];"));
  EXPECT_THAT(parse_model(kSymbolicText).status().to_string(),
              HasSubstr("symbol n has no value: give one"));
}

}  // namespace
}  // namespace collage
