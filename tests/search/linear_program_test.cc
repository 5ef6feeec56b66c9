// Which searches end at the linear program, and that the others go on from there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "search/fixture.h"
#include "search/synthetic.h"

namespace collage {
namespace {

SearchResult best_cover(const SearchProblem& problem) {
  SearchOptions options;
  options.top_k = 1;
  return *search_covers(problem, options);
}

TEST(LinearProgram, ItsSolutionIsMostlyTheCheapestCover) {
  Fixture f("x; a = conv(x, c1); b = relu(a); d = conv(b, c2); return d");
  for (const char* node : {"a", "b", "d"}) {
    f.add("t", {node}, 4);
    f.add("t", {node}, 2, {"A4a"}, {"A4a"});
  }
  f.add("u", {"a", "b"}, 3.5, {"A4a"}, {"A4a"});
  const SearchResult result = best_cover(f.problem);
  EXPECT_EQ(result.counts.searches, 1u);
  EXPECT_EQ(result.counts.from_linear_program, 1u);
  EXPECT_EQ(result.counts.branches, 0u);
  EXPECT_EQ(f.text(result.covers[0]), "u: a b | t: d | x plain>A4a@0 | d A4a>plain@2");
  check_cover(f, result.covers[0]);
}

// Half of each pair covers all three; covers cost what a pair and a single one do.
SearchResult best_of_pairs(double single, const std::array<double, 3>& pairs) {
  Fixture f("x; a = relu(x); b = exp(x); d = tanh(x); return tuple(a, b, d)");
  for (const char* node : {"a", "b", "d"}) f.add("t", {node}, single);
  f.add("t", {"a", "b"}, pairs[0]);
  f.add("t", {"b", "d"}, pairs[1]);
  f.add("t", {"a", "d"}, pairs[2]);
  return best_cover(f.problem);
}

TEST(LinearProgram, WhereItTakesHalvesBranchesDecide) {
  const SearchResult result = best_of_pairs(3, {2, 2, 2});
  EXPECT_EQ(result.counts.searches, 1u);
  EXPECT_EQ(result.counts.from_linear_program, 0u);
  EXPECT_EQ(result.covers[0].seconds, 5);
  EXPECT_TRUE(result.exact);
}

// Where the halves cost nothing, no part of the bound says how far to look.
TEST(LinearProgram, ABoundOfNothingEndsTheSearchToo) {
  const SearchResult result = best_of_pairs(1, {0, 0, 0});
  EXPECT_EQ(result.covers[0].seconds, 1);
  EXPECT_TRUE(result.exact);
}

// Whatever the costs are rounded to: the bound and the distance to a solution seldom add up to it.
TEST(LinearProgram, BranchesEndAtAnyCosts) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> cost(1e-5, 2e-5);
  for (int problem = 0; problem < 200; ++problem) {
    const double alone = cost(random) + 2e-5;
    const std::array<double, 3> pairs = {cost(random), cost(random), cost(random)};
    const double least = std::min(3 * alone, *std::min_element(pairs.begin(), pairs.end()) + alone);
    const SearchResult result = best_of_pairs(alone, pairs);
    EXPECT_DOUBLE_EQ(result.covers[0].seconds, least);
    EXPECT_TRUE(result.exact);
  }
}

// The cheapest conversion into a form is from one that nothing gives.
TEST(LinearProgram, AConversionFromAFormThatDoesNotExistIsNotBelieved) {
  Fixture f("x; a = conv(x, c1); b = relu(a); return b");
  f.add("t", {"a"}, 1);
  f.add("t", {"a"}, 5, {""}, {"A2a"});
  f.add("t", {"b"}, 1, {"A4a"}, {""});
  f.problem.conversion_cost = [](const TensorType&, const Encoding& from, const Encoding&) {
    return from == encoding("A2a") ? 0.25 : 4.5;
  };
  const SearchResult result = best_cover(f.problem);
  EXPECT_EQ(result.covers[0].seconds, 6.25);
  EXPECT_TRUE(result.exact);
}

// The two cheapest kernels are convex, but wait for each other.
TEST(LinearProgram, KernelsThatWaitForOneAnotherAreNotBelieved) {
  Fixture f("x; a = conv(x, c1); b = conv(x, c2); d = relu(a); e = relu(b); return tuple(d, e)");
  for (const char* node : {"a", "b", "d", "e"}) f.add("t", {node}, 2);
  f.add("u", {"a", "e"}, 1);
  f.add("u", {"b", "d"}, 1);
  const SearchResult result = best_cover(f.problem);
  EXPECT_EQ(result.counts.from_linear_program, 0u);
  EXPECT_EQ(result.covers[0].seconds, 5);
  EXPECT_TRUE(result.exact);
  check_cover(f, result.covers[0]);
}

TEST(LinearProgram, AlternativesAreSearchesOfTheirOwn) {
  SyntheticProblem synthetic(SyntheticProblem::nasnet(1), 1);
  const SearchResult result = *search_covers(synthetic.problem());
  EXPECT_GT(result.counts.searches, 1u);
  EXPECT_LE(result.counts.from_linear_program, result.counts.searches);
}

}  // namespace
}  // namespace collage
