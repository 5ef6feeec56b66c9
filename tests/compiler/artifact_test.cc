// Programs of every toolchain, saved and loaded: the same bits, on several contexts at once;
// damaged files are refused. long_artifact_test.cc does so with whole workloads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "compiler/saved_program.h"
#include "compiler/workload.h"
#include "ir/structural.h"
#include "report/saved_module.h"
#include "runtime/thread_team.h"
#include "verify/comparison.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class SavedProgram : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_saved_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("COLLAGE_CACHE", (folder_ / "cache").c_str(), 1);
    register_all();
    options_.threads = 2;
    options_.worker = fs::read_symlink("/proc/self/exe");
  }
  void TearDown() override { fs::remove_all(folder_); }

  Model load(const std::string& name) {
    Result<Model> model = Model::load(testing::small_model(name, folder_));
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return std::move(model).value();
  }

  fs::path folder_;
  ProgramOptions options_;
};

using EmbeddedModel = SavedProgram;

TEST_P(SavedProgram, GivesTheSameBits) {
  const Backend* backend = find_backend(GetParam());
  if (backend == nullptr || !backend->available().ok()) GTEST_SKIP() << "no " << GetParam();
  options_.targets = {GetParam()};
  const bool slow = backend->traits().is_host, partial = backend->name() == "amx";
  if (partial) options_.targets.push_back("reference");  // for what it does not take
  for (const char* name : {"mnist", "bert", "mobilenet_v2", "nasrnn"}) {
    if (slow && std::string_view(name) != "mnist") continue;
    if (partial && std::string_view(name) != "bert") continue;
    SCOPED_TRACE(name);
    const fs::path file = folder_ / (std::string(name) + ".collage");
    EXPECT_EQ(testing::run_saved(load(name), options_, file, 8, slow ? 2 : 10), "");
  }
}
INSTANTIATE_TEST_SUITE_P(Toolchains, SavedProgram,
                         ::testing::Values("onednn", "native", "openvino", "blas", "amx",
                                           "reference"),
                         [](const auto& info) { return std::string(info.param); });

// A machine with other cores than the one that compiled it, or a wish of who loads it.
TEST_P(SavedProgram, RunsWithOtherThreads) {
  const Backend* backend = find_backend(GetParam());
  if (backend == nullptr || !backend->available().ok()) GTEST_SKIP() << "no " << GetParam();
  options_.targets = {GetParam(), "reference"};
  const Model model = load(backend->traits().is_host ? "mnist" : "bert");
  const fs::path file = folder_ / "threads.collage";
  for (const int chosen : {1, 0}) {
    options_.threads = chosen;
    Result<Program> program = Program::compile(model, options_);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    ASSERT_TRUE(program->save(model, file).ok());
    const std::vector<Tensor> inputs = synthetic_inputs(model.impl().module.main(), 5).value();
    const std::vector<Tensor> expected = program->run(inputs).value();
    for (const int told : {0, 1, 3, 5}) {
      const Result<Program> artifact = Program::load(file, told);
      ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
      EXPECT_EQ(artifact->threads(), told > 0     ? told
                                     : chosen > 0 ? chosen
                                                  : ThreadTeam::available_cores());
      Result<Context> context = artifact->make_context();
      ASSERT_TRUE(context.ok()) << context.status().to_string();
      const Result<std::vector<Tensor>> outputs = context->run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status().to_string();
      for (size_t i = 0; i < expected.size(); ++i) {
        const Difference difference =
            compare_tensors((*outputs)[i], expected[i], model_tolerance());
        EXPECT_TRUE(difference.within) << told << " threads: " << difference.reason;
      }
    }
  }
}

// Only code that was compiled ahead needs the instruction sets that it was compiled for.
TEST_F(EmbeddedModel, AsksForWhatItsKernelsUse) {
  const auto features = [&](const char* target) {
    options_.targets = {target};
    const Model model = load("mnist");
    Result<Program> program = Program::compile(model, options_);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    const fs::path file = folder_ / "mnist.collage";
    EXPECT_TRUE(program->save(model, file).ok());
    return ArtifactFile::open(file).value()->manifest().features;
  };
  EXPECT_TRUE(features("reference").empty());
  const Backend* native = find_backend("native");
  if (native == nullptr || !native->available().ok()) GTEST_SKIP() << "no native";
  const std::vector<std::string> of_code = features("native");
  EXPECT_NE(std::find(of_code.begin(), of_code.end(), "avx2"), of_code.end());
  for (const std::string& feature : of_code) EXPECT_FALSE(feature.starts_with("amx")) << feature;
}

using DamagedProgram = SavedProgram;
TEST_P(DamagedProgram, IsRefused) {
  const Backend* backend = find_backend(GetParam());
  if (backend == nullptr || !backend->available().ok()) GTEST_SKIP() << "no " << GetParam();
  options_.targets = {GetParam()};
  const fs::path file = folder_ / "mnist.collage";
  ASSERT_EQ(testing::run_saved(load("mnist"), options_, file, 1, 1), "");
  EXPECT_EQ(testing::accepted_damages(file, 100), 0);
}
INSTANTIATE_TEST_SUITE_P(Toolchains, DamagedProgram, ::testing::Values("onednn", "native"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(EmbeddedModel, IsTheModel) {
  options_.targets = {"reference"};
  const Model model = load("mnist");
  Result<Program> program = Program::compile(model, options_);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  const fs::path file = folder_ / "mnist.collage";
  ASSERT_TRUE(program->save(model, file).ok());
  Result<Model> again = embedded_model(*ArtifactFile::open(file).value());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->inputs()[0].name, model.inputs()[0].name);
  EXPECT_TRUE(structural_equal(again->impl().module.main(), model.impl().module.main()));
}

}  // namespace
}  // namespace collage
