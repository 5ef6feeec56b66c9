// Programs of every toolchain, saved and loaded: the same bits, on several contexts at once;
// damaged files are refused. long_artifact_test.cc does so with whole workloads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backend/backend.h"
#include "compiler/saved_program.h"
#include "compiler/workload.h"
#include "ir/structural.h"
#include "report/saved_module.h"
#include "targets/backends.h"

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

TEST_P(SavedProgram, GivesTheSameBits) {
  const Backend* backend = find_backend(GetParam());
  if (backend == nullptr || !backend->available().ok()) GTEST_SKIP() << "no " << GetParam();
  options_.targets = {GetParam()};
  const bool slow = backend->is_host(), partial = backend->name() == "amx";
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

using EmbeddedModel = SavedProgram;
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
