// Whole workloads saved and loaded: eight contexts by 200 runs give the program's bits and hold no
// weights of their own; 1,000 damaged files are refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "compiler/saved_program.h"
#include "compiler/workload.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class LongArtifact : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_long_artifact_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("COLLAGE_CACHE", (folder_ / "cache").c_str(), 1);
    register_all();
    options_.threads = 1;
    options_.worker = fs::read_symlink("/proc/self/exe");
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  ProgramOptions options_;
};

TEST_P(LongArtifact, EightContextsGiveTheSameBits) {
  Result<Model> model = Model::load(testing::full_model(GetParam(), folder_));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  for (const char* target : {"onednn", "native", "openvino"}) {
    const Backend* backend = find_backend(target);
    if (backend == nullptr || !backend->available().ok()) continue;
    SCOPED_TRACE(target);
    options_.targets = {target};
    EXPECT_EQ(testing::run_saved(*model, options_, folder_ / "program.collage", 8, 200), "");
  }
}
INSTANTIATE_TEST_SUITE_P(Workloads, LongArtifact, ::testing::Values("resnet50", "bert"),
                         [](const auto& info) { return std::string(info.param); });

using LongDamage = LongArtifact;
TEST_P(LongDamage, ThousandDamagedFilesAreRefused) {
  const Backend* backend = find_backend(GetParam());
  if (backend == nullptr || !backend->available().ok()) GTEST_SKIP() << "no " << GetParam();
  Result<Model> model = Model::load(testing::small_model("mnist", folder_));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  options_.targets = {GetParam()};
  const fs::path file = folder_ / "mnist.collage";
  ASSERT_EQ(testing::run_saved(*model, options_, file, 1, 1), "");
  EXPECT_EQ(testing::accepted_damages(file, 1000), 0);
}
INSTANTIATE_TEST_SUITE_P(Toolchains, LongDamage,
                         ::testing::Values("onednn", "native", "openvino", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace collage
