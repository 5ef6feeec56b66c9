// The search finds what an integer program proves optimal, on the ten workloads with measured
// costs. They are generated at reduced size, and what the database lacks is measured, but for
//
//   COLLAGE_WORKLOADS=FOLDER    of generated models, at full size say
//   COLLAGE_CACHE=FOLDER        with their costs
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "choose/cover_problem.h"
#include "compiler/integer_program.h"
#include "compiler/workload.h"
#include "search/search.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class MeasuredOptimalCover : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_optimal_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const char* models = std::getenv("COLLAGE_WORKLOADS");
    path_ = models != nullptr ? fs::path(models) / (std::string(GetParam()) + ".onnx")
                              : testing::small_model(GetParam(), folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_, path_;
};

TEST_P(MeasuredOptimalCover, EqualsTheIntegerProgram) {
  Result<testing::Workload> workload = testing::Workload::load(path_);
  ASSERT_TRUE(workload.ok()) << workload.status().to_string();
  CostOptions options;
  options.compile.threads = ThreadTeam(0).size();
  options.cache = cache_state(workload->graph().function(), options.compile.threads);
  options.worker_command = {fs::read_symlink("/proc/self/exe").string(), "worker"};
  Result<fs::path> cache = cache_folder();
  ASSERT_TRUE(cache.ok());
  std::unique_ptr<CostDatabase> database = CostDatabase::open(*cache / "costs.db");
  MeasuredCosts costs(*database, options);
  Result<std::vector<CostedCandidate>> candidates = workload->costed(costs);
  ASSERT_TRUE(candidates.ok()) << candidates.status().to_string();
  CoverProblem problem(workload->graph(), *candidates, costs);
  Result<SearchResult> found = problem.settle([&] { return search_covers(problem.problem()); });
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  double cost = found->covers[0].seconds;
  Result<testing::IntegerOptimum> optimum =
      testing::solve_integer_program(problem.problem(), 1000, cost);
  ASSERT_TRUE(optimum.ok()) << optimum.status().to_string();
  std::printf(
      "%s: %zu candidates, %zu measured now; search %.6f ms, gap %.3g%%, %s, %zu branches, %.0f "
      "ms; "
      "program %.6f ms, %zu variables, %zu rows, %zu rounds, %.0f ms\n",
      GetParam(), candidates->size(), static_cast<size_t>(costs.store().counts.measured),
      1e3 * cost, 100 * (cost / found->lower_bound - 1), found->exact ? "exact" : "not exact",
      found->counts.branches, 1e3 * found->seconds, 1e3 * optimum->seconds, optimum->variables,
      optimum->rows, optimum->rounds, 1e3 * optimum->solving_seconds);
  EXPECT_TRUE(found->exact);
  EXPECT_NEAR(found->lower_bound, cost, 1e-9 * cost);
  EXPECT_NEAR(optimum->seconds, cost, 1e-7 * cost);
}

INSTANTIATE_TEST_SUITE_P(Workloads, MeasuredOptimalCover, ::testing::ValuesIn(testing::kWorkloads),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace collage
