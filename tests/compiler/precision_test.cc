// Budgets of errors: which covers are found within one, by costs and errors that are made up.
#include "choose/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "backend/targets/backends.h"

namespace collage {
namespace {

// Kernels that take 2 ms, or `seconds` with an error.
struct Lowered {
  double seconds, error;
};

// More calls than there are kernels in any test.
Function chain() {
  Expr x = make_var("x", TensorType{{1}, DType::kFloat32}), last = x;
  for (int i = 0; i < 16; ++i) last = *make_call("nn.relu", {last});
  return make_function({x}, last);
}

std::vector<CostedCandidate> candidates_of(const std::vector<Lowered>& kernels) {
  register_all();
  auto relu = [](int64_t size) {
    Expr x = make_var("x", TensorType{{size}, DType::kFloat32});
    return make_function({x}, *make_call("nn.relu", {x}));
  };
  static const DataflowGraph graph(chain());
  std::vector<CostedCandidate> candidates;
  for (const Lowered& kernel : kernels) {
    auto costs = std::make_shared<TargetCosts>();
    MeasuredVariant full{Variant{"full", {}, {}}, Measured{2e-3, 2e-3, 2e-3, 20}};
    MeasuredVariant lowered{Variant{"lowered", {}, {}},
                            Measured{kernel.seconds, kernel.seconds, kernel.seconds, 20}};
    lowered.variant.rounding = rounding::kBFloat16;
    lowered.error = kernel.error;
    costs->variants = {full, lowered};
    const size_t node = candidates.size() + 1;
    const CandidatePartition partition{"", SubGraph::of(graph, IndexSet{node}), nullptr};
    // No two share their costs.
    candidates.push_back({partition, relu(static_cast<int64_t>(node)), std::move(costs)});
  }
  return candidates;
}

// One cover, the cheapest of all ways to lower some kernels that are within the estimate.
Result<CoverSearch> cheapest(const std::vector<CostedCandidate>& candidates, double max_error,
                             WantedCovers) {
  std::optional<NamedCover> best;
  for (size_t lowered = 0; lowered < size_t{1} << candidates.size(); ++lowered) {
    NamedCover cover;
    for (size_t c = 0; c < candidates.size(); ++c) {
      const size_t variant = lowered >> c & 1;
      cover.kernels.push_back({c, variant});
      const MeasuredVariant& row = row_of(cover.kernels.back(), candidates);
      cover.lowered |= row.variant.lowered();
      const Measured* m = measured(row.cost);
      cover.seconds += m != nullptr ? m->seconds() : 1;  // left out
    }
    if (estimated_error(cover, candidates) <= max_error && (!best || cover.seconds < best->seconds))
      best = std::move(cover);
  }
  CoverSearch search;
  search.covers.push_back(*best);
  return search;
}

class Budgets : public ::testing::Test {
 protected:
  std::vector<CostedCandidate> candidates =
      candidates_of({{1e-3, 2e-3}, {0.5e-3, 1e-3}, {1e-3, 8e-3}, {1.5e-3, 1e-3}, {1.9e-3, 4e-3}});
  std::vector<CostedCandidate> given = candidates;
  std::vector<double> amplifications = {3, 3, 3, 3, 3};  // of errors on their way to the outputs
  std::vector<std::vector<size_t>> tried;                // variants

  double output_error(const NamedCover& cover) const {
    double sum = 0;
    for (const Cover::Kernel& kernel : cover.kernels)
      sum += std::pow(amplifications[kernel.candidate] *
                          given[kernel.candidate].costs->variants[kernel.variant].error,
                      2);
    return std::sqrt(sum);
  }
  BudgetList find(double max_error) {
    Result<BudgetList> budgets = find_budgets(candidates, max_error, cheapest,
                                              [&](const NamedCover& cover) -> Result<double> {
                                                tried.emplace_back();
                                                for (const Cover::Kernel& kernel : cover.kernels)
                                                  tried.back().push_back(kernel.variant);
                                                return output_error(cover);
                                              });
    EXPECT_TRUE(budgets.ok()) << budgets.status().to_string();
    return budgets ? *budgets : BudgetList();
  }
};

TEST_F(Budgets, WithinALargeBudgetErrorsAreFree) {
  const BudgetList found = find(0.1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].error, kMostError);
  EXPECT_EQ(tried, (std::vector<std::vector<size_t>>{{1, 1, 1, 1, 1}}));
}

TEST_F(Budgets, TheKernelsThatGainMostForTheirErrorAreLowered) {
  // All of them err by 0.028.
  const BudgetList found = find(1e-2);
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.back().error, 1e-2);
  for (const auto& [name, amplification] : found.back().amplifications)
    EXPECT_NEAR(amplification, 3, 1e-9) << name;
  EXPECT_EQ(tried.front(), (std::vector<size_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(tried.back(), (std::vector<size_t>{1, 1, 0, 1, 0}));
}

TEST_F(Budgets, KernelsWhoseErrorsGrowMostStayInFloat32) {
  amplifications[1] = 50;
  ASSERT_FALSE(find(1e-2).empty());
  EXPECT_EQ(tried.back(), (std::vector<size_t>{1, 0, 0, 1, 0}));
}

// The second is better worth its error than the third, but only the third fits beside the first.
TEST_F(Budgets, WhatIsLeftOfTheBudgetIsUsed) {
  given = candidates = candidates_of({{1e-3, 1.83e-3}, {1.01e-3, 2.47e-3}, {1.75e-3, 1.67e-3}});
  ASSERT_FALSE(find(1e-2).empty());
  EXPECT_EQ(tried.back(), (std::vector<size_t>{1, 0, 1}));
}

TEST_F(Budgets, NothingIsLoweredWhereNothingIsWithinTheBudget) {
  EXPECT_TRUE(find(1e-4).empty());
  EXPECT_GE(tried.size(), 1u);
}

TEST_F(Budgets, FailuresAreBeyondAnyBudget) {
  Result<BudgetList> budgets = find_budgets(
      candidates, 0.5, cheapest,
      [](const NamedCover&) -> Result<double> { return error(ErrorCode::kVerification, "NaN"); });
  ASSERT_TRUE(budgets.ok());
  EXPECT_TRUE(budgets->empty());
}

}  // namespace
}  // namespace collage
