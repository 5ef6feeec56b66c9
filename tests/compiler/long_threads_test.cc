// Whole workloads on eight threads of an application, 200 runs each, bit for bit as alone: eight
// programs for different toolchains and teams at once, then one program that all threads run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "compiler/run_on_threads.h"
#include "compiler/workload.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using testing::on_threads;
using testing::Rehearsed;

constexpr int kThreads = 8, kRuns = 200;

class LongThreads : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_long_threads_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ::setenv("COLLAGE_CACHE", (folder_ / "cache").c_str(), 1);
    Result<Model> model = Model::load(testing::full_model(GetParam(), folder_));
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    model_.emplace(std::move(model).value());
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<Rehearsed> rehearsed(const std::string& target, int threads, int callers) {
    ProgramOptions options;
    options.targets = {target};
    options.threads = threads;
    options.worker = fs::read_symlink("/proc/self/exe");
    return Rehearsed::make(*model_, options, callers);
  }

  static std::vector<std::string> toolchains() {
    register_all();
    std::vector<std::string> names;
    for (const char* name : {"onednn", "native", "openvino"})
      if (const Backend* backend = find_backend(name); backend && backend->available().ok())
        names.push_back(name);
    return names;
  }

  fs::path folder_;
  std::optional<Model> model_;
};

TEST_P(LongThreads, EightPrograms) {
  const std::vector<std::string> names = toolchains();
  ASSERT_FALSE(names.empty());
  std::vector<Rehearsed> programs;
  for (size_t p = 0; p < kThreads; ++p) {
    const int threads = 1 + static_cast<int>(p) % 2;
    Result<Rehearsed> made = rehearsed(names[p % names.size()], threads, kThreads);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    programs.push_back(std::move(made).value());
  }
  std::vector<std::string> failures(kThreads);
  on_threads(kThreads, [&](int t) {
    failures[static_cast<size_t>(t)] = programs[static_cast<size_t>(t)].run(t, kRuns);
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_P(LongThreads, OneProgram) {
  for (const std::string& name : toolchains()) {
    SCOPED_TRACE(name);
    Result<Rehearsed> made = rehearsed(name, 2, kThreads);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    std::vector<std::string> failures(kThreads);
    on_threads(kThreads, [&](int t) { failures[static_cast<size_t>(t)] = made->run(t, kRuns); });
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, LongThreads, ::testing::Values("resnet50", "nasnet_a", "bert"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace collage
