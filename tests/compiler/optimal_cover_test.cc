// The search finds what an integer program proves optimal, on the graphs, candidates, variants and
// layouts of the ten workloads at reduced size, with made-up costs.
#include <gtest/gtest.h>
#include <unistd.h>

#include "compiler/integer_program.h"
#include "compiler/workload.h"
#include "search/search.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

class OptimalCover : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("collage_optimal_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_P(OptimalCover, EqualsTheIntegerProgram) {
  Result<testing::Workload> workload =
      testing::Workload::load(testing::small_model(GetParam(), folder_));
  ASSERT_TRUE(workload.ok()) << workload.status().to_string();
  Result<const SearchProblem*> problem = workload->mock();
  ASSERT_TRUE(problem.ok()) << problem.status().to_string();
  Result<SearchResult> found = search_covers(**problem);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  double cost = found->covers[0].seconds;
  EXPECT_TRUE(found->exact);
  EXPECT_NEAR(found->lower_bound, cost, 1e-9 * cost);
  Result<testing::IntegerOptimum> optimum = testing::solve_integer_program(**problem, 100);
  ASSERT_TRUE(optimum.ok()) << optimum.status().to_string();
  EXPECT_NEAR(optimum->seconds, cost, 1e-7 * cost);
  RecordProperty("variables", static_cast<int>(optimum->variables));
  RecordProperty("conversions", static_cast<int>(found->covers[0].conversions.size()));
  RecordProperty("search_us", static_cast<int>(1e6 * found->seconds));
  RecordProperty("program_us", static_cast<int>(1e6 * optimum->solving_seconds));
}

INSTANTIATE_TEST_SUITE_P(Workloads, OptimalCover, ::testing::ValuesIn(testing::kWorkloads),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace collage
