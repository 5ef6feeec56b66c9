#include "search/evolution.h"

#include <gtest/gtest.h>

#include "search/synthetic.h"

namespace collage {
namespace {

// What programs really take on a machine where the kernels that the search likes best slow down
// beside each other: every kernel of the best cover takes twice as long in a program. The
// search cannot know.
class Machine {
 public:
  Machine(const SearchProblem& problem, const Cover& best) : problem_(problem) {
    for (size_t k = 0; k < best.kernels.size(); ++k) slow_.insert(best.kernels[k].candidate);
  }
  double seconds(const Cover& cover) const {
    double sum = cover.seconds;
    for (const ChosenKernel& kernel : cover.kernels)
      if (slow_.count(kernel.candidate) != 0)
        sum += problem_.candidates[kernel.candidate].variants[kernel.variant].seconds;
    return sum;
  }

 private:
  const SearchProblem& problem_;
  std::set<size_t> slow_;
};

std::vector<size_t> one_gene_each(const SearchProblem& problem) {
  std::vector<size_t> genes;
  for (size_t c = 0; c < problem.candidates.size(); ++c) genes.push_back(c);
  return genes;
}

double evolve(const SyntheticProblem& synthetic, uint64_t seed, size_t generations,
              std::vector<double>* history = nullptr) {
  const SearchProblem& problem = synthetic.problem();
  Evolution evolution(problem, one_gene_each(problem), seed);
  const SearchResult start = *search_covers(problem);
  Machine machine(problem, start.covers.at(0));
  double best = 1;
  auto time = [&](const Cover& cover) {
    double seconds = machine.seconds(cover);
    if (history != nullptr) history->push_back(seconds);
    best = std::min(best, seconds);
    evolution.learn(cover, seconds);
  };
  for (const Cover& cover : start.covers) time(cover);
  for (size_t generation = 0; generation < generations; ++generation)
    for (const Cover& cover : evolution.breed(6)) time(cover);
  return best;
}

TEST(Evolution, FindsWhatSumsOfKernelsCannotSee) {
  double before = 0, after = 0;
  for (unsigned seed : {1, 2, 3, 4}) {
    SyntheticProblem synthetic(SyntheticProblem::nasrnn(1), seed);
    const double start = evolve(synthetic, 1, 0), refined = evolve(synthetic, 1, 12);
    EXPECT_LE(refined, start);
    before += start;
    after += refined;
  }
  EXPECT_LT(after, 0.97 * before);
}

TEST(Evolution, IsTheSameForTheSameSeed) {
  SyntheticProblem synthetic(SyntheticProblem::nasnet(1), 4);
  std::vector<double> first, second, other;
  evolve(synthetic, 1, 3, &first);
  evolve(synthetic, 1, 3, &second);
  evolve(synthetic, 2, 3, &other);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
}

TEST(Evolution, NeverBreedsACoverTwiceAndGivesItsTrueCost) {
  SyntheticProblem synthetic(SyntheticProblem::nasrnn(1), 4);
  const SearchProblem& problem = synthetic.problem();
  Evolution evolution(problem, one_gene_each(problem), 3);
  EXPECT_TRUE(evolution.breed(4).empty());
  std::set<std::vector<std::pair<size_t, size_t>>> seen;
  std::vector<Cover> covers = search_covers(problem)->covers;
  double least = covers[0].seconds;
  for (int generation = 0; generation < 4; ++generation) {
    for (const Cover& cover : covers) {
      std::vector<std::pair<size_t, size_t>> kernels;
      double seconds = 0;
      for (const ChosenKernel& kernel : cover.kernels) {
        kernels.emplace_back(kernel.candidate, kernel.variant);
        seconds += problem.candidates[kernel.candidate].variants[kernel.variant].seconds +
                   problem.launch_penalty;
      }
      for (const ChosenConversion& conversion : cover.conversions)
        seconds += conversion.seconds + problem.launch_penalty;
      std::sort(kernels.begin(), kernels.end());
      EXPECT_TRUE(seen.insert(kernels).second);
      EXPECT_NEAR(cover.seconds, seconds, 1e-9);
      EXPECT_GE(cover.seconds, least * (1 - 1e-9));
      evolution.learn(cover, cover.seconds);
    }
    covers = evolution.breed(5);
    EXPECT_FALSE(covers.empty());
  }
}

}  // namespace
}  // namespace collage
