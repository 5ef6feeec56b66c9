// The price of errors: which covers are found for a budget, by costs and errors that are made up.
#include "choose/precision.h"

#include <gtest/gtest.h>

#include <cmath>

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

// One cover: every kernel the cheaper way.
Result<CoverSearch> cheapest(const std::vector<CostedCandidate>& candidates) {
  NamedCover cover;
  for (size_t c = 0; c < candidates.size(); ++c) {
    auto seconds = [&](size_t v) {
      const Measured* m = measured(candidates[c].costs->variants[v].cost);
      return m != nullptr ? m->seconds() : 1;  // left out
    };
    size_t variant = seconds(1) < seconds(0) ? 1 : 0;
    cover.kernels.push_back({c, variant, 0, candidates[c].costs});
    cover.predicted_seconds += seconds(variant);
  }
  CoverSearch search;
  search.covers.push_back(std::move(cover));
  return search;
}

class Prices : public ::testing::Test {
 protected:
  std::vector<CostedCandidate> candidates =
      candidates_of({{1e-3, 2e-3}, {0.5e-3, 1e-3}, {1e-3, 8e-3}, {1.5e-3, 1e-3}, {1.9e-3, 4e-3}});
  std::vector<CostedCandidate> given = candidates;
  std::vector<double> amplifications = {3, 3, 3, 3, 3};  // of errors on their way to the outputs
  std::vector<std::vector<size_t>> tried;                // variants

  double output_error(const NamedCover& cover) const {
    double sum = 0;
    for (const CoverKernel& kernel : cover.kernels)
      sum += std::pow(amplifications[kernel.candidate] *
                          given[kernel.candidate].costs->variants[kernel.variant].error,
                      2);
    return std::sqrt(sum);
  }
  std::vector<LoweringPrice> find(double max_error) {
    Result<std::vector<LoweringPrice>> prices = find_prices(
        candidates, max_error, cheapest, [&](const NamedCover& cover) -> Result<double> {
          tried.emplace_back();
          for (const CoverKernel& kernel : cover.kernels) tried.back().push_back(kernel.variant);
          return output_error(cover);
        });
    EXPECT_TRUE(prices.ok()) << prices.status().to_string();
    return prices ? *prices : std::vector<LoweringPrice>();
  }
};

TEST_F(Prices, WithinALargeBudgetErrorsAreFree) {
  std::vector<LoweringPrice> found = find(0.1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].price, 0);
  EXPECT_EQ(tried, (std::vector<std::vector<size_t>>{{1, 1, 1, 1, 1}}));
}

TEST_F(Prices, TheKernelsThatGainMostForTheirErrorAreLowered) {
  // All of them err by 0.028.
  std::vector<LoweringPrice> found = find(1e-2);
  ASSERT_FALSE(found.empty());
  EXPECT_GT(found.back().price, 0);
  for (const auto& [name, amplification] : found.back().amplifications)
    EXPECT_NEAR(amplification, 3, 1e-9) << name;
  EXPECT_EQ(tried.front(), (std::vector<size_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(tried.back(), (std::vector<size_t>{1, 1, 0, 1, 0}));
}

TEST_F(Prices, KernelsWhoseErrorsGrowMostStayInFloat32) {
  amplifications[1] = 50;
  ASSERT_FALSE(find(1e-2).empty());
  EXPECT_EQ(tried.back(), (std::vector<size_t>{1, 0, 0, 1, 0}));
}

// The second is better worth its error than the third, but only the third fits beside the first.
TEST_F(Prices, WhatIsLeftOfTheBudgetIsUsed) {
  given = candidates = candidates_of({{1e-3, 1.83e-3}, {1.01e-3, 2.47e-3}, {1.75e-3, 1.67e-3}});
  std::vector<LoweringPrice> found = find(1e-2);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found.back().scatter, 0);
  EXPECT_EQ(tried.back(), (std::vector<size_t>{1, 0, 1}));
}

TEST_F(Prices, NothingIsLoweredWhereNothingIsWithinTheBudget) {
  EXPECT_TRUE(find(1e-4).empty());
  EXPECT_GE(tried.size(), 1u);
}

TEST_F(Prices, FailuresAreBeyondAnyBudget) {
  Result<std::vector<LoweringPrice>> prices = find_prices(
      candidates, 0.5, cheapest,
      [](const NamedCover&) -> Result<double> { return error(ErrorCode::kVerification, "NaN"); });
  ASSERT_TRUE(prices.ok());
  EXPECT_TRUE(prices->empty());
}

}  // namespace
}  // namespace collage
