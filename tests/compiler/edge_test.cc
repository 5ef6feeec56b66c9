// The edge of the library: nothing throws out of it, whatever backends, options or tensors do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "compiler/fault_backend.h"
#include "compiler/given_model.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

class Edge : public testing::GivenModel {
 protected:
  Edge()
      : GivenModel(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32]) {
  tanh(%x)
})") {}
  void SetUp() override {
    testing::register_all_and_faulty();
    GivenModel::SetUp();
    options_.always_measure = true;
    options_.effort = Effort::kFast;
    model_.emplace(model_of(given_));
  }
  Result<Program> compiled(const std::string& fault) {
    options_.targets = {"faulty " + fault, "reference"};
    Result<Program> program = Status(ErrorCode::kInternal, "it threw");
    EXPECT_NO_THROW(program = Program::compile(*model_, options_)) << fault;
    return program;
  }
  std::optional<Model> model_;
};

TEST_F(Edge, AnExceptionOfARuleIsAnInternalError) {
  const Status status = compiled("-fault=throw -at=rule").status();
  EXPECT_EQ(status.code(), ErrorCode::kInternal);
  EXPECT_THAT(status.to_string(), HasSubstr("thrown on purpose"));
}

TEST_F(Edge, AKernelThatThrowsInTheProgramIsLeftOut) {
  for (const char* at : {"compile_for_the_program", "run_in_the_program"}) {
    Result<Program> program = compiled(std::string("-fault=throw -only=1 -at=") + at);
    ASSERT_TRUE(program.ok()) << at << ": " << program.status().to_string();
    EXPECT_EQ(program->impl().report.kernels.at(0).target, "reference") << at;
    EXPECT_TRUE(program->run({Tensor::zeros(DType::kFloat32, {4, 8})}).ok());
  }
}

TEST_F(Edge, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [&](auto change) {
    ProgramOptions options = options_;
    options.targets = {"reference"};
    change(options);
    Result<Program> program = Status(ErrorCode::kInternal, "it threw");
    EXPECT_NO_THROW(program = Program::compile(*model_, options));
    EXPECT_EQ(program.status().code(), ErrorCode::kUsage) << program.status().to_string();
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  refused([](ProgramOptions& o) { o.threads = std::numeric_limits<int>::max(); });
  refused([](ProgramOptions& o) { o.threads = -1; });
  for (double value : {kNan, kInfinity, -1.0}) {
    refused([&](ProgramOptions& o) { o.max_error = value; });
  }
  refused([](ProgramOptions& o) { o.exclude = {"nobody:"}; });
  refused([](ProgramOptions& o) { o.pin = {"(=reference"}; });
  refused([](ProgramOptions& o) { o.config = "/absent/file"; });
}

TEST_F(Edge, TensorsWithoutDataAreRefused) {
  Result<Program> program = compiled("-fault=none");
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const Tensor nothing = Tensor::borrow(DType::kFloat32, {4, 8}, nullptr);
  const Result<std::vector<Tensor>> outputs = program->run({nothing});
  EXPECT_EQ(outputs.status().code(), ErrorCode::kBadModel);
  EXPECT_THAT(outputs.status().to_string(), HasSubstr("has no data"));
  EXPECT_FALSE(program->run({}).ok());
  EXPECT_FALSE(program->run({Tensor()}).ok());
}

// Names and options are bytes of anybody's: they travel to the worker and into the database.
TEST_F(Edge, TextThatIsNoUtf8IsNoReasonToThrow) {
  EXPECT_EQ(compiled("-fault=none -note=\xff\xfe").status().code(), ErrorCode::kUsage);
  const std::filesystem::path file = folder_ / "bytes.relay";
  std::ofstream(file) << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4, 8), float32]) {\n"
                         "  let %f = fn (%p: Tensor[(4, 8), float32], Primitive=1, "
                         "Note=\"\xff\xfe\") { tanh(%p) };\n  %f(%x)\n}\n";
  EXPECT_NO_THROW({
    Result<Model> model = Model::load(file);
    if (model) (void)Program::compile(*model, options_);
  });
}

TEST_F(Edge, FilesOfAnyKindAreErrors) {
  for (const char* path : {"", "/", "/dev/null", "/absent/model.onnx", "\xff\xfe.onnx"})
    EXPECT_NO_THROW(EXPECT_FALSE(Model::load(path).ok()) << path);
  LoadOptions options;
  options.shapes["x"] = {-1, std::numeric_limits<int64_t>::max(), 7};
  options.dims["n"] = std::numeric_limits<int64_t>::max();
  EXPECT_NO_THROW(EXPECT_FALSE(Model::load("/absent/model.onnx", options).ok()));
  EXPECT_FALSE(Tensor::allocate(DType::kFloat32, options.shapes["x"]).ok());
  EXPECT_FALSE(Tensor::allocate(DType::kFloat32, {int64_t{1} << 31, int64_t{1} << 20}).ok());
}

}  // namespace
}  // namespace collage
